#include "gen/plan/graph/border.h"

#include "gen/plan/graph/normalize.h"
#include "gen/plan/optimizers.h"
#include "gen/plan/program.h"

static void refuse_loss(const struct program *program, const struct node *cause, struct diagnostics *diags) {
  const struct node *last = program->graph->entry->results.items[0]->producer;
  const char *why = "this one is a sum";
  if (cause != NULL && cause->call != NULL) why = "the result of a loop is none";
  if (cause != NULL && cause->call == NULL) why = arena_printf(program->arena, "%s makes it none", cause->kind->name);
  diag_error(diags, cause != NULL ? cause->where : last->where,
             "a loss must be one mean over samples for micro-batches to count by tokens; %s", why);
  diag_note(diags, job_where(program->job, "accumulation.normalize"), "'accumulation.normalize' is tokens here");
  diag_help(diags,
            "let the loss be cross_entropy, mean_all, mse_loss or the like, times numbers, or a sum over a count "
            "that maximum keeps above 0; or set accumulation.normalize: batches");
}

/* How micro-batches of unequal weight make one mean. */
static bool normalize(struct program *program, struct builder *builder, const struct node *cause,
                      struct diagnostics *diags) {
  struct border *border = &program->border;
  if (border->mean.form == MEAN_COUNTED) {
    border->counts = true;
    border->mean.count = give_count(builder, program->graph->entry, border->mean);
    border->divisor *= border->mean.most;
  } else if (border->mean.form == MEAN_FIXED) {
    border->by_share = border->short_steps;
  } else {
    refuse_loss(program, cause, diags);
    return false;
  }
  return true;
}

bool leave_targets_out(struct program *program, const struct region *entry, const struct mean *mean,
                       struct diagnostics *diags) {
  for (int i = 0; mean->form == MEAN_COUNTED && i < entry->inputs.count; i++)
    if (mean->of == entry->inputs.items[i] && mean->of->dtype == DTYPE_INT32) {
      program->no_target = mean->without;
      return true;
    }
  bool packed = program->job->data.packing != PACKING_NONE;
  diag_error(diags, entry->results.items[0]->producer->where,
             "%s needs a loss that can leave targets out, and this one cannot",
             packed ? "the last token of a document" : "a batch that samples do not fill");
  if (packed)
    diag_note(diags, job_where(program->job, "data.packing"), "'data.packing' is %s here",
              job_word(program->job, "data.packing"));
  else
    diag_note(diags, job_where(program->job, "data.drop_last"), "'data.drop_last' is false here");
  diag_help(diags, "let the loss be cross_entropy of the data's classes, times numbers; or set %s",
            packed ? "data.packing: none" : "data.drop_last: true");
  return false;
}

bool plan_border(struct program *program, struct builder *builder, struct diagnostics *diags) {
  const struct job *job = program->job;
  struct border *border = &program->border;
  *border = (struct border){.scaler = job->precision.grad_scaler.enabled, .divisor = job->accumulation.num_steps};
  border->joins = job->data.joins;
  border->short_steps = job_accumulates(job) && job->accumulation.sync_with_dataloader;
  const struct node *cause = NULL;
  bool by_tokens = job->accumulation.normalize == NORMALIZE_TOKENS;
  bool leaves_out = job->data.keep_last || job->data.packing != PACKING_NONE; /* targets */
  if (by_tokens || leaves_out) border->mean = loss_mean(builder, program->graph->entry, &cause);
  if (leaves_out && !leave_targets_out(program, program->graph->entry, &border->mean, diags)) return false;
  if (by_tokens && !normalize(program, builder, cause, diags)) return false;
  border->skips = border->scaler || job->training.on_nonfinite == NONFINITE_SKIP;
  border->unscales = border->scaler || border->counts || border->by_share;
  /* The mean over ranks costs no pass over memory: it is in the seed or, so that small formats keep their range, in
   * what unscales; but in one place for all divisions of a step. A count is one over all ranks. */
  double ranks = (double)job_adding_ranks(job);
  bool in_seed = !border->unscales || job_has_tree(job);
  if (in_seed) border->divisor *= ranks;
  border->sharers = !in_seed && !border->counts ? ranks : 1;
  bool whole = border->skips || job->optimizer.clip_grad_norm > 0; /* asks for all gradients before an update */
  border->measures = whole && job_optimizer(job)->in_backward;
  border->factor = border->unscales || job->optimizer.clip_grad_norm > 0;
  return true;
}

struct seed border_seed(const struct program *program) {
  const struct border *border = &program->border;
  return (struct seed){.constant = 1 / border->divisor,
                       .input = border->scaler || border->joins ? "seed" : NULL,
                       .count = border->counts ? border->mean.count : NULL};
}
