/* accel-gen check: a job alone, without its model. */
#include <stdio.h>

#include "gen/commands/commands.h"

int command_check(const struct options *options) {
  struct diagnostics diags = diagnostics_in(options->arena);
  const struct job *job = job_read(options->arena, options->argument, options->overrides, options->n_overrides, &diags);
  if (diags.count > 0) diag_print(&diags, stderr, options->colour);
  if (job == NULL) return STATUS_BAD_JOB;
  if (options->resolved) fputs(job_resolved(options->arena, job), stdout);
  return STATUS_OK;
}
