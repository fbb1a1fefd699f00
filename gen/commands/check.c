/* accel-gen check: a job alone. Its model is read only where --resolved is to show numbers that follow from it. */
#include <stdio.h>

#include "gen/commands/commands.h"
#include "gen/commands/travel.h"
#include "gen/plan/solve.h"

int command_check(const struct options *options) {
  struct travel travel = {
      .options = options, .arena = options->arena, .diags = diagnostics_in(options->arena), .kind = PROGRAM_TRAIN};
  struct diagnostics *diags = &travel.diags;
  travel.job = job_read(options->arena, options->argument, options->overrides, options->n_overrides, diags);
  if (travel.job != NULL && options->resolved && is_open(travel.job) && travel_to_job(&travel) != STATUS_OK)
    travel.job = NULL;
  if (diags->count > 0) diag_print(diags, stderr, options->colour);
  if (travel.job == NULL) return STATUS_BAD_JOB;
  if (options->resolved) fputs(job_resolved(options->arena, travel.job), stdout);
  return STATUS_OK;
}
