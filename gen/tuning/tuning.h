/* Tuning: how long kernels take on a machine, by variant, as `accel-gen tune` has
 * measured it. A table is a file that later runs read: schemas/tuning.schema.json describes its JSON.
 *
 * An entry is found by its subject, which says all that a kernel's text depends on, and by the number of threads. */
#ifndef ACCEL_TUNING_TUNING_H
#define ACCEL_TUNING_TUNING_H

#include <stdbool.h>
#include <stdint.h>

#include "gen/base/diag.h"

struct tuned_variant {
  const char *variant; /* as templates know it; "": there is one */
  double seconds;      /* of one execution */
};

struct tuned {
  const char *subject;
  int64_t threads;
  double flops, bytes; /* of one execution */
  struct {
    struct tuned_variant *items;
    int count, capacity;
  } variants;
};

/* The machine that a table is valid for. */
struct tuned_machine {
  const char *processor; /* "AMD EPYC (family 26, model 2, stepping 1)" */
  int64_t cores;
};

struct tuning {
  struct arena *arena;
  const char *file; /* as it was named; NULL: none was read */
  struct tuned_machine machine;
  const char *generator, *compiler, *flags, *library; /* that it was measured with */
  struct {
    struct tuned *items;
    int count, capacity;
  } entries;
  int forced; /* every choice takes its variant of this number, or its first; -1: the fastest */
};

/* An empty table. */
struct tuning *tuning_new(struct arena *arena);

/* Reads a table. NULL with errors in `diags`, each with its location and its reason, when the file cannot be read, is
 * none, or was made by another version of the generator or for another machine than `machine` (NULL: any). `where`:
 * what asks for it. */
struct tuning *tuning_read(struct arena *arena, const char *file, const struct tuned_machine *machine,
                           struct location where, struct diagnostics *diags);

/* The same of a text: `file` is its name. */
struct tuning *tuning_parse(struct arena *arena, const char *file, const char *text, size_t length,
                            const struct tuned_machine *machine, struct diagnostics *diags);

/* What a trainer for GPUs has measured of its matmuls (schemas/measured.schema.json), as a table: its machine, its
 * library, and an entry for each, whose subject is the matmul's name in the program and whose first variant is the
 * library's own choice. NULL as tuning_parse. */
struct tuning *tuning_measured(struct arena *arena, const char *file, const char *text, size_t length,
                               struct diagnostics *diags);

/* The table as JSON, entries by subject. */
const char *tuning_text(const struct tuning *tuning);

/* An entry; NULL when there is none. Of several that differ in their bytes, the one whose bytes are nearest. */
const struct tuned *tuning_find(const struct tuning *tuning, const char *subject, int64_t threads, double bytes);

/* Seconds of a variant; 0 when it was not measured. */
double tuned_seconds(const struct tuned *tuned, const char *variant);

/* Sets a variant's seconds in the entry of this subject, threads and bytes. */
void tuning_put(struct tuning *tuning, const struct tuned *entry, const char *variant, double seconds);

/* The current machine. */
struct tuned_machine tuning_machine(struct arena *arena);

/* Where its table is kept: in $XDG_CACHE_HOME, or ~/.cache, in accel-gen/, under a name that follows from the machine.
 * NULL where there is no home. */
const char *tuning_path(struct arena *arena, const struct tuned_machine *machine);

#endif
