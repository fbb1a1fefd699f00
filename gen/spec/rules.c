#include "gen/spec/rules.h"

/* One rule: `key` must be at most, or at least, `bound`. A key of 0 that stands for "not given" is free. */
struct rule {
  const char *key, *bound;
  bool at_least;
  bool free_at_zero;
  bool below_something; /* the bound must not be 0 */
};

static const struct rule rules[] = {
    {.key = "schedule.warmup_steps", .bound = "training.steps"},
    {.key = "schedule.decay_steps", .bound = "schedule.warmup_steps", .at_least = true, .free_at_zero = true},
    {.key = "schedule.min_lr", .bound = "optimizer.lr"},
    {.key = "schedule.start_weight_decay", .bound = "optimizer.weight_decay", .below_something = true},
};

static void check_rule(struct arena *arena, const struct spec_node *job, const struct rule *rule,
                       struct diagnostics *diags) {
  const struct spec_node *value = spec_find(job, rule->key), *bound = spec_find(job, rule->bound);
  if (value == NULL || bound == NULL || (rule->free_at_zero && value->real == 0)) return;
  if (rule->below_something && bound->real == 0) {
    diag_error(diags, value->where, "'%s' grows to %s, which is 0%s", rule->key, rule->bound,
               bound->is_default ? " by default" : "");
    diag_help(diags, "give %s the value that is to be reached", rule->bound);
    return;
  }
  if (rule->at_least ? value->real >= bound->real : value->real <= bound->real) return;
  const char *limit = spec_number(arena, bound->real, false);
  diag_error(diags, value->where, "'%s' must be at %s %s, which is %s%s, not %s", rule->key,
             rule->at_least ? "least" : "most", rule->bound, limit, bound->is_default ? " by default" : "",
             spec_number(arena, value->real, false));
  if (!bound->is_default) diag_note(diags, bound->where, "'%s' is %s here", rule->bound, limit);
}

/* Where the samples of a step are given beside what makes them up. */
static void check_samples(const struct spec_node *job, struct diagnostics *diags) {
  const struct spec_node *samples = spec_find(job, "accumulation.train_batch_size");
  const struct spec_node *size = spec_find(job, "data.batch_size"), *steps = spec_find(job, "accumulation.num_steps");
  if (samples == NULL || size->kind == SPEC_STRING || steps->kind == SPEC_STRING) return;
  if (size->integer * steps->integer == samples->integer) return;
  diag_error(diags, samples->where,
             "'accumulation.train_batch_size' is %lld, but data.batch_size times num_steps is %lld",
             (long long)samples->integer, (long long)(size->integer * steps->integer));
  diag_help(diags, "with data.batch_size: auto or accumulation.num_steps: auto the plan divides the samples of a step");
}

/* Targets are hidden, replaced or kept. */
static void check_masking(struct arena *arena, const struct spec_node *job, struct diagnostics *diags) {
  const struct spec_node *random = spec_find(job, "data.masking.random"), *keep = spec_find(job, "data.masking.keep");
  if (random == NULL || keep == NULL || random->real + keep->real <= 1) return;
  const struct spec_node *at = keep->is_default ? random : keep;
  diag_error(diags, at->where,
             "'data.masking.random' and 'data.masking.keep' are shares of the targets, but %s and %s are more than all",
             spec_number(arena, random->real, false), spec_number(arena, keep->real, false));
  diag_help(diags, "what is left of 1 becomes data.masking.mask_token");
}

void rules_check(struct arena *arena, const struct spec_node *job, struct diagnostics *diags) {
  for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) check_rule(arena, job, &rules[i], diags);
  check_samples(job, diags);
  check_masking(arena, job, diags);
}
