#include "gen/plan/graph/packing.h"

bool check_packing(const struct program *program, struct diagnostics *diags) {
  const struct job *job = program->job;
  if (program->data.positions == 0 || program->data.positions >= job->data.sequence_length) return true;
  diag_error(diags, job_where(job, "data.packing"),
             "the model looks up only %lld positions, but a sequence has %d positions",
             (long long)program->data.positions, job->data.sequence_length);
  diag_help(diags, "make data.sequence_length smaller, or the model's table of positions larger");
  return false;
}
