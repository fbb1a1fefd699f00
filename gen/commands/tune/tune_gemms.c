/* accel-gen tune of a job for GPUs: which of cuBLASLt's algorithms computes each matmul fastest. What is measured is
 * the trainer itself, which times them where its matmuls run (runtime/gpu/measure.c); the table names the fastest by
 * its configuration, and the program that is made by the table takes it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gen/commands/cli/files.h"
#include "gen/commands/cli/process.h"
#include "gen/commands/generate/bundle.h"
#include "gen/commands/tune/tune.h"
#include "gen/program/library.h"
#include "gen/spec/source.h"
#include "runtime/base/terminal.h"

/* ---- Measuring ---- */

static bool is_there(const struct target *target) {
  bool found = target->build.drivers == NULL;
  for (int i = 0; !found && target->build.drivers[i] != NULL; i++) found = access(target->build.drivers[i], R_OK) == 0;
  return found;
}

/* Builds the trainer and lets it run a step; the file that it then has written, NULL after a message on standard error.
 */
static const char *measure(const struct options *options, const char *folder) {
  struct arena *arena = options->arena;
  const char *program = arena_printf(arena, "%s/trainer", folder), *file = arena_printf(arena, "%s/measured", folder);
  struct words command = words_in(arena);
  if (!is_there(needs_of(options).target)) {
    rt_print(stderr, "accel-gen: no GPU to measure on: run the trainer where one is, with ACCEL_MEASURE=FILE in its "
                     "environment and --steps 1, then accel-gen tune JOB --measured FILE -o TABLE\n");
    return NULL;
  }
  if (!bundle_build(options, arena_printf(arena, "%s/bundle", folder), program)) return NULL;
  words_add(&command, program);
  words_split(&command, "--steps 1 --project-dir");
  words_add(&command, arena_printf(arena, "%s/run", folder));
  setenv("ACCEL_MEASURE", file, 1);
  bool good = process_read(&command) != NULL;
  unsetenv("ACCEL_MEASURE");
  if (good) return file;
  rt_print(stderr, "accel-gen: the trainer that was to be measured did not run\n");
  return NULL;
}

/* ---- The table ---- */

/* Adds what was measured of the program's matmuls, by their subjects and with the library's own choice by its name;
 * how many they are. */
static int add_gemms(struct tuning *table, const struct program *program, const struct tuning *measured) {
  const int64_t threads = program->job->devices.threads;
  int count = 0;
  for (int i = 0; i < program->library.gemms.count; i++) {
    const struct library_gemm *gemm = &program->library.gemms.items[i];
    const struct tuned *found = tuning_find(measured, gemm->name, 1, 0);
    if (found == NULL) continue;
    struct tuned entry = {.subject = gemm->subject,
                          .threads = threads > 0 ? threads : table->machine.cores,
                          .flops = gemm->flops,
                          .bytes = gemm->bytes};
    for (int k = 0; k < found->variants.count; k++)
      tuning_put(table, &entry, k == 0 ? library_variant : found->variants.items[k].variant,
                 found->variants.items[k].seconds);
    count++;
  }
  return count;
}

static int read_measured(const struct options *options, const struct compilation *compilation, const char *measured,
                         const char *file) {
  struct arena *arena = options->arena;
  struct diagnostics diags = diagnostics_in(arena);
  size_t length = 0;
  const char *text = source_read(arena, measured, (struct location){0}, &length, &diags);
  const struct tuning *read = text != NULL ? tuning_measured(arena, measured, text, length, &diags) : NULL;
  if (diags.count > 0) diag_print(&diags, stderr, options->colour);
  if (read == NULL) return STATUS_BAD_JOB;
  struct tuning *fresh = tuning_new(arena);
  fresh->machine = read->machine;
  fresh->library = read->library;
  struct tuning *table = tune_open(options, file, fresh);
  if (add_gemms(table, compilation->program, read) > 0) return tune_finish(compilation, table, file);
  fprintf(stderr,
          "accel-gen: %s has no measurements of this job's matmuls: its trainer writes it, with "
          "ACCEL_MEASURE=FILE in the environment\n",
          measured);
  return STATUS_BAD_JOB;
}

int tune_gemms(const struct options *options, const char *file) {
  struct arena *arena = options->arena;
  struct compilation compilation = {.options = options,
                                    .arena = arena,
                                    .diags = diagnostics_in(arena),
                                    .kind = PROGRAM_TRAIN,
                                    .tuning = tuning_new(arena)};
  int status = compile_to_program(&compilation);
  if (compilation.diags.count > 0) diag_print(&compilation.diags, stderr, options->colour);
  if (status != STATUS_OK) return status;
  const char *folder = make_folder(arena);
  if (folder == NULL) return STATUS_CANNOT;
  const char *measured = options->measured != NULL ? options->measured : measure(options, folder);
  status = measured != NULL ? read_measured(options, &compilation, measured, file) : STATUS_CANNOT;
  remove_folder(folder);
  return status;
}
