/* accel-gen check: whether a job, its model and its hooks give a program, without what is said of one; or the job that
 * a program or a checkpoint states. */
#include <stdio.h>

#include "gen/commands/cli/commands.h"
#include "gen/commands/generate/compilation.h"
#include "gen/commands/inspect/stated.h"

static int print_stated(const struct options *options) {
  struct diagnostics diags = diagnostics_in(options->arena);
  const struct job *job = read_stated_job(options, options->argument, &diags);
  if (diags.count > 0) diag_print(&diags, stderr, options->colour);
  if (job != NULL) fputs(job_resolved(options->arena, job), stdout);
  return job != NULL ? STATUS_OK : STATUS_CANNOT;
}

int command_check(const struct options *options) {
  if (options->resolved && states_job(options->argument)) return print_stated(options);
  struct compilation compilation = {
      .options = options, .arena = options->arena, .diags = diagnostics_in(options->arena), .kind = PROGRAM_TRAIN};
  int status = compile_to_program(&compilation);
  if (compilation.diags.count > 0) diag_print(&compilation.diags, stderr, options->colour);
  if (status == STATUS_OK && options->resolved)
    fputs(job_sourced(options->arena, compilation.job, options->overrides, options->n_overrides), stdout);
  return status;
}
