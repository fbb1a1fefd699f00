#include "gen/plan/graph/step_end.h"

#include <string.h>

#include "gen/plan/graph/normalize.h"
#include "gen/program/optimizers.h"
#include "gen/program/program.h"

static void refuse_loss(const struct program *program, const struct node *cause, struct diagnostics *diags) {
  const struct node *last = program->graph->entry->results.items[0]->producer;
  const char *why = "this one is a sum";
  if (cause != NULL && cause->call != NULL) why = "the result of a loop is not a mean";
  if (cause != NULL && cause->call == NULL)
    why = arena_printf(program->arena, "%s changes it to something else", cause->kind->name);
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
  struct step_end *step_end = &program->step_end;
  if (step_end->mean.form == MEAN_COUNTED) {
    step_end->counts = true;
    step_end->mean.count = give_count(builder, program->graph->entry, step_end->mean);
    step_end->divisor *= step_end->mean.most;
  } else if (step_end->mean.form == MEAN_FIXED) {
    step_end->by_micro_batches = step_end->short_steps;
  } else {
    refuse_loss(program, cause, diags);
    return false;
  }
  return true;
}

/* What ranks take their parts of. */
static const struct value *whole_of(const struct value *value) {
  while (value != NULL && value->producer != NULL && value->producer->kind->index.moves)
    value = value->producer->inputs[0];
  return value;
}

/* An input of rows that the loss leaves out where it is program_data.no_target. */
static void mark_target(struct program *program, const char *name) {
  const struct job *job = program->job;
  for (int i = 0; i < job->data.n_inputs; i++) {
    if (strcmp(job->data.inputs[i].name, name) != 0) continue;
    program->data.inputs[i].is_target = true;
    program->data.inputs[i].none = program->data.no_target;
  }
}

/* What looks the input up has no row for the number that means no target. */
static bool is_looked_up(const struct program *program, const struct value *input) {
  for (int i = 0; i < program->data.looked_up.count; i++)
    if (strcmp(program->data.looked_up.items[i], input->name) == 0) return true;
  return false;
}

/* Whether a mean counts the data's targets, some of which can be left out; sets program->data.no_target. */
static bool can_leave_out(struct program *program, const struct region *entry, const struct mean *mean) {
  for (int i = 0; mean->form == MEAN_COUNTED && i < entry->inputs.count; i++)
    if (whole_of(mean->of) == entry->inputs.items[i] && mean->of->dtype == DTYPE_INT32 &&
        !is_looked_up(program, entry->inputs.items[i])) {
      program->data.no_target = mean->without;
      mark_target(program, entry->inputs.items[i]->name);
      return true;
    }
  return false;
}

void count_targets(struct program *program, const struct region *entry, const struct mean *mean) {
  const struct job *job = program->job;
  bool counts = job->accumulation.normalize == NORMALIZE_TOKENS && !job_has_rows(job) && !job->data.masking.on;
  program->data.counts_targets = counts && can_leave_out(program, entry, mean);
}

bool leave_targets_out(struct program *program, const struct region *entry, const struct mean *mean,
                       struct diagnostics *diags) {
  if (can_leave_out(program, entry, mean)) return true;
  bool packed = program->job->data.packing != PACKING_NONE;
  diag_error(diags, entry->results.items[0]->producer->where,
             "%s needs a loss that can leave targets out, and this one cannot",
             packed ? "the last token of a document" : "a batch that samples do not fill");
  if (packed)
    diag_note(diags, job_where(program->job, "data.packing"), "'data.packing' is %s here",
              job_word(program->job, "data.packing"));
  else
    diag_note(diags, job_where(program->job, "data.drop_last"), "'data.drop_last' is false here");
  for (int i = 0; mean->form == MEAN_COUNTED && i < entry->inputs.count; i++)
    if (whole_of(mean->of) == entry->inputs.items[i] && is_looked_up(program, entry->inputs.items[i]))
      diag_note(diags, entry->where, "the model also looks '%s' up in a table, which has no row for a target left out",
                entry->inputs.items[i]->name);
  diag_help(diags, "let the loss be cross_entropy of the data's classes, times numbers; or set %s",
            packed ? "data.packing: none" : "data.drop_last: true");
  return false;
}

bool plan_step_end(struct program *program, struct builder *builder, struct diagnostics *diags) {
  const struct job *job = program->job;
  struct step_end *step_end = &program->step_end;
  *step_end = (struct step_end){.scaler = job->precision.grad_scaler.enabled, .divisor = job->accumulation.num_steps};
  step_end->uneven_inputs = job->data.uneven_inputs;
  step_end->delays = job->precision.grad_scaler.hysteresis > 1 || job->precision.grad_scaler.min_loss_scale > 0;
  step_end->delays &= step_end->scaler;
  step_end->takes_seed = step_end->scaler || step_end->uneven_inputs;
  step_end->short_steps = job_accumulates(job) && job->accumulation.sync_with_dataloader;
  const struct node *cause = NULL;
  bool by_tokens = job->accumulation.normalize == NORMALIZE_TOKENS;
  bool leaves_out = job->data.keep_last || job->data.packing != PACKING_NONE; /* targets */
  if (by_tokens || leaves_out) step_end->mean = loss_mean(builder, program->graph->entry, &cause);
  if (leaves_out && !leave_targets_out(program, program->graph->entry, &step_end->mean, diags)) return false;
  if (by_tokens) count_targets(program, program->graph->entry, &step_end->mean);
  if (by_tokens && !normalize(program, builder, cause, diags)) return false;
  step_end->skips = step_end->scaler || job->training.on_nonfinite == NONFINITE_SKIP;
  step_end->unscales = step_end->scaler || step_end->counts || step_end->by_micro_batches;
  /* The mean over ranks costs no pass over memory: the seed has it or, so that 16-bit values stay in range, the factor
   * that unscales; all divisions of a step are in the same one of them. A count is already a sum over all ranks. */
  double ranks = (double)job_adding_ranks(job);
  bool in_seed = !step_end->unscales || job_has_tree(job);
  if (in_seed) step_end->divisor *= ranks;
  /* A count is of all ranks, and what they have exchanged may be their mean already. */
  bool means = step_end->counts && job_exchanges_means(job);
  step_end->numerator = step_end->divisor * (means ? (double)job_data_ranks(job) : 1);
  step_end->contributors = !in_seed && !step_end->counts ? ranks : 1;
  bool whole = step_end->skips || job->optimizer.clip_grad_norm > 0; /* all gradients are needed before an update */
  step_end->norm_pass = whole && job_optimizer(job)->in_backward;
  step_end->factor = step_end->unscales || job->optimizer.clip_grad_norm > 0;
  return true;
}

struct seed loss_seed(const struct program *program) {
  const struct step_end *step_end = &program->step_end;
  return (struct seed){.constant = 1 / step_end->divisor,
                       .input = step_end->takes_seed ? "seed" : NULL,
                       .count = step_end->counts ? step_end->mean.count : NULL};
}
