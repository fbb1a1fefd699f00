/* Manifest: where a program comes from, as data next to it: what it was made of, with digests, and for each of its
 * lines the templates' and the model's lines and the job's keys that it comes from. schemas/manifest.schema.json
 * describes its JSON.
 *
 * A manifest holds no time, no absolute path and no name of a machine or a person: files are named from its own folder.
 */
#ifndef ACCEL_PROVENANCE_MANIFEST_H
#define ACCEL_PROVENANCE_MANIFEST_H

#include <stdbool.h>

#include "gen/base/diag.h"
#include "gen/base/text.h"

/* A file and its SHA-256, 64 hexadecimal digits. */
struct manifest_file {
  const char *role; /* "job", "base" (a file that the job extends), "model", "header", "hooks", "tuning", "template";
                       "program" of the output; "module" */
  const char *name;
  const char *sha256;
};

struct manifest_files {
  struct manifest_file *items;
  int count, capacity;
};

/* Texts in a row. */
struct manifest_list {
  const char **items;
  int count, capacity;
};

/* A key of the job. */
struct manifest_key {
  const char *key, *value; /* the value as YAML text */
  bool written;            /* in the job or on the command line; else the schema's default */
  const char *where;       /* "job.yaml:9", "--set optimizer.lr=0.1"; "" for a default */
  /* Values that were put instead of it, all else unchanged, and that gave a program. A line has the key where one
   * of them gives another line. None: every other value that was tried is refused. */
  struct manifest_list tried;
};

/* A line of the program. */
struct manifest_line {
  struct manifest_list templates; /* "devices/cpu/step.c.j2:10" */
  struct manifest_list callers;   /* of the first of them, innermost first */
  struct manifest_list model;     /* "../models/gpt2.c:31" */
  int *keys;                      /* indices among the manifest's keys, increasing */
  int n_keys, keys_capacity;
};

struct manifest {
  struct {
    const char *version;
    const char *sha256; /* of the command's own file */
  } generator;
  const char *kind;             /* "train" or "generate" */
  const char *templates;        /* the folder of --templates; NULL: the generator's own */
  struct manifest_list set;     /* --set: "optimizer.lr=0.1" */
  struct manifest_files inputs; /* the job first, then the model */
  struct manifest_file output;
  struct manifest_files modules; /* that the program holds, as files next to it have them; none: it has no modules */
  struct {
    const char *digest;   /* SHA-256 of the resolved job, which the program prints */
    const char *resolved; /* its YAML text, every default filled in */
    const char *model;    /* 16 hexadecimal digits over the tokens of the model's C, which the program holds */
  } job;
  struct manifest_key *keys;
  int n_keys;
  const char *plan;           /* the plan's figures, a JSON object (gen/plan/report/report.h) */
  const char *plan_text;      /* the same for people */
  const char *compile;        /* the command of a shell in the manifest's folder */
  const char *runtime;        /* what pkg-config calls the library that it is linked with; not in the file */
  const char *compile_before; /* the same in front of the C compiler's name; not in the file */
  const char *compile_rest;   /* the same after the compiler's name and flags; not in the file */
  struct manifest_line *lines;
  int n_lines;
  struct manifest *second; /* of the program's second text, which has a file of its own; NULL: it has none */
};

/* "trainer.manifest.json" for "trainer.c", "trainer.cu.manifest.json" for "trainer.cu". */
const char *manifest_path(struct arena *arena, const char *program);

/* The manifest as JSON text, one line of the program a line. */
const char *manifest_text(struct arena *arena, const struct manifest *manifest);

/* Reads a manifest's file. NULL with an error in `diags` where it cannot be read or is none. */
struct manifest *manifest_read(struct arena *arena, const char *file, struct diagnostics *diags);

/* Adds a text to a list. */
void manifest_add(struct arena *arena, struct manifest_list *list, const char *text);

/* Where a line comes from, in a few words: "step.c.j2:10, gpt2.c:31, optimizer.lr"; and all of it, in lines. */
const char *locations_text(struct arena *arena, const struct manifest *manifest, const struct manifest_line *line);
const char *origins_text(struct arena *arena, const struct manifest *manifest, const struct manifest_line *line);

/* Whether a line has a key. */
bool manifest_has_key(const struct manifest_line *line, int key);

#endif
