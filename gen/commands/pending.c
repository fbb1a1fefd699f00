/* Stands in for commands whose stages are not in the tree yet. */
#include <stdio.h>

#include "gen/commands/commands.h"

__attribute__((weak)) int command_generate(const struct options *options) {
  fprintf(stderr, "accel-gen: cannot generate %s yet\n", options->argument);
  return STATUS_CANNOT;
}

__attribute__((weak)) int command_plan(const struct options *options) {
  return command_generate(options);
}

__attribute__((weak)) struct job *job_read(struct arena *arena, const char *file, const struct job_override *overrides,
                                           int n_overrides, struct diagnostics *diags) {
  (void)arena, (void)overrides, (void)n_overrides;
  diag_error(diags, (struct location){.file = file}, "jobs cannot be read yet");
  return NULL;
}

__attribute__((weak)) const char *job_resolved(struct arena *arena, const struct job *job) {
  (void)arena;
  return job->file;
}

__attribute__((weak)) const char *job_help(struct arena *arena, const char *key) {
  (void)arena, (void)key;
  return NULL;
}
