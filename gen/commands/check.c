/* accel-gen check: whether a job, its model and its hooks give a program, without what is said of one. */
#include <stdio.h>

#include "gen/commands/commands.h"
#include "gen/commands/travel.h"

int command_check(const struct options *options) {
  struct travel travel = {
      .options = options, .arena = options->arena, .diags = diagnostics_in(options->arena), .kind = PROGRAM_TRAIN};
  int status = travel_to_program(&travel);
  if (travel.diags.count > 0) diag_print(&travel.diags, stderr, options->colour);
  if (status == STATUS_OK && options->resolved) fputs(job_resolved(options->arena, travel.job), stdout);
  return status;
}
