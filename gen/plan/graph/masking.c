#include "gen/plan/graph/masking.h"

bool check_masking(const struct program *program, struct diagnostics *diags) {
  const struct job *job = program->job;
  if (!job->data.masking.on || program->kind != PROGRAM_TRAIN) return true;
  struct location where = job_where(job, "data.masking.mask_token");
  if (program->data.vocabulary == 0) {
    diag_error(diags, where, "the model looks nothing up by its tokens, so its vocabulary is not known");
    diag_help(diags, "give the tokens to embedding(...), or leave data.masking out");
    return false;
  }
  if (job->data.masking.mask_token < program->data.vocabulary) return true;
  diag_error(diags, where, "'mask_token' is %d, which is not below the model's vocabulary of %lld",
             job->data.masking.mask_token, (long long)program->data.vocabulary);
  diag_help(diags, "name a token of the vocabulary, or give the model a larger one in model.config");
  return false;
}
