#include "gen/spec/compression.h"

#include "gen/spec/parallel.h"
#include "gen/spec/refusals.h"

static const char hook_key[] = "parallelism.ddp.comm_hook";

static const struct spec_node *option(const struct spec_node *job, const char *name) {
  return spec_find(spec_find(job, "parallelism.ddp.comm_state_option"), name);
}

static bool is_power_sgd(const struct spec_node *hook) {
  return spec_is(hook, "power_sgd") || spec_is(hook, "batched_power_sgd");
}

/* One square for all gradients is as small as it is, and its one column is divided by its own length. */
static void check_batched(const struct spec_node *job, const struct spec_node *hook, struct diagnostics *diags) {
  static const struct {
    const char *key, *only;
  } numbers[] = {{"min_compression_rate", "2"}, {"orthogonalization_epsilon", "0"}};
  for (size_t i = 0; i < sizeof numbers / sizeof *numbers && spec_is(hook, "batched_power_sgd"); i++) {
    const struct spec_node *number = option(job, numbers[i].key);
    if (spec_is(number, numbers[i].only)) continue;
    diag_error(diags, number->where, "'%s' is a number of comm_hook: power_sgd", numbers[i].key);
    diag_note(diags, hook->where, "'%s' is %s here", hook_key, hook->text);
    diag_help(diags, "leave it out, or set parallelism.ddp.comm_hook: power_sgd");
  }
}

/* As PyTorch has it, which rebuilds its buckets in the second step. */
static void check_start(const struct spec_node *job, const struct spec_node *hook, struct diagnostics *diags) {
  const struct spec_node *start = option(job, "start_powerSGD_iter"), *warm = option(job, "warm_start");
  const struct spec_node *feedback = option(job, "use_error_feedback");
  if (!is_power_sgd(hook) || start == NULL || start->integer > 1) return;
  if (warm->integer == 0 && feedback->integer == 0) return;
  const struct spec_node *cause = feedback->integer != 0 ? feedback : warm;
  diag_error(diags, start->where, "'start_powerSGD_iter' must be at least 2 with '%s'",
             cause == feedback ? "use_error_feedback" : "warm_start");
  diag_help(diags, "use start_powerSGD_iter: 2, or set use_error_feedback and warm_start to false");
}

/* Of a function of the user's own that exchanges gradients. */
static const struct refusal hooked[] = {
    {"parallelism.ddp.comm_hook", "!no", "the function has all of the exchange", "parallelism.ddp.comm_hook: no"},
    {"accumulation.sync_each_batch", "true", "the function has what a step's micro-batches add up to",
     "accumulation.sync_each_batch: false"},
};

static void check_hook(const struct spec_node *job, struct diagnostics *diags) {
  const struct spec_node *function = spec_find(job, "hooks.on_bucket");
  if (function == NULL) return;
  check_refusals(job, hooked, COUNT(hooked), "user code that exchanges gradients", function,
                 "a job without hooks.on_bucket", diags);
  if (parallel_ranks(job) > 1) return;
  diag_error(diags, function->where, "'hooks.on_bucket' exchanges gradients with other ranks, and there are none");
  diag_help(diags, "set devices.per_node or devices.nodes, or leave it out");
}

void compression_check(const struct spec_node *job, struct diagnostics *diags) {
  const struct spec_node *hook = spec_find(job, hook_key), *each = spec_find(job, "accumulation.sync_each_batch");
  check_hook(job, diags);
  check_batched(job, hook, diags);
  check_start(job, hook, diags);
  if (!is_power_sgd(hook) || each->integer == 0) return;
  diag_error(diags, each->where, "'accumulation.sync_each_batch' does not go with factors of gradients");
  diag_note(diags, hook->where, "'%s' is %s here", hook_key, hook->text);
  diag_help(diags, "what they miss belongs to a whole step: use accumulation.sync_each_batch: false");
}

/* The type in which gradients are sent, or with factors what the wrapper says. */
static enum mixed_precision wire_of(const struct job *job, const struct spec_node *hook) {
  const struct spec_node *word = is_power_sgd(hook) ? spec_find(job->tree, "parallelism.ddp.comm_wrapper") : hook;
  if (spec_is(word, "bf16")) return PRECISION_BF16;
  return spec_is(word, "fp16") ? PRECISION_FP16 : PRECISION_NO;
}

void compression_bind(struct job *job) {
  const struct spec_node *hook = spec_find(job->tree, hook_key);
  job->parallelism.wire = wire_of(job, hook);
  job->parallelism.by_hook = spec_find(job->tree, "hooks.on_bucket") != NULL && job->devices.ranks > 1;
  if (!is_power_sgd(hook) || job_data_ranks(job) == 1) return; /* stages alone exchange no gradients */
  job->parallelism.power_sgd.on = true;
  job->parallelism.power_sgd.batched = spec_is(hook, "batched_power_sgd");
  job->parallelism.power_sgd.rank = option(job->tree, "matrix_approximation_rank")->integer;
  job->parallelism.power_sgd.start = option(job->tree, "start_powerSGD_iter")->integer;
  job->parallelism.power_sgd.seed = option(job->tree, "random_seed")->integer;
  job->parallelism.power_sgd.least_rate = option(job->tree, "min_compression_rate")->real;
  job->parallelism.power_sgd.epsilon = option(job->tree, "orthogonalization_epsilon")->real;
  job->parallelism.power_sgd.feedback = option(job->tree, "use_error_feedback")->integer != 0;
  job->parallelism.power_sgd.warm = option(job->tree, "warm_start")->integer != 0;
}
