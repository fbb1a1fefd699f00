/* accel-gen check: whether a job, its model and its hooks give a program, without what is said of one. */
#include <stdio.h>

#include "gen/commands/cli/commands.h"
#include "gen/commands/generate/compilation.h"

int command_check(const struct options *options) {
  struct compilation compilation = {
      .options = options, .arena = options->arena, .diags = diagnostics_in(options->arena), .kind = PROGRAM_TRAIN};
  int status = compile_to_program(&compilation);
  if (compilation.diags.count > 0) diag_print(&compilation.diags, stderr, options->colour);
  if (status == STATUS_OK && options->resolved) fputs(job_resolved(options->arena, compilation.job), stdout);
  return status;
}
