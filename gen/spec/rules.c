#include "gen/spec/rules.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "gen/spec/data_inputs.h"
#include "gen/spec/device.h"
#include "gen/spec/fp8.h"
#include "gen/spec/parallel.h"
#include "gen/spec/quantize.h"

/* One rule: `key` must be at most, or at least, `bound`. A key of 0 that means "not given" is free. */
struct rule {
  const char *key, *bound;
  bool at_least;
  bool free_at_zero;
  bool below_something; /* the bound must not be 0 */
};

static const struct rule rules[] = {
    {.key = "schedule.warmup_steps", .bound = "training.steps"},
    {.key = "schedule.decay_steps", .bound = "schedule.warmup_steps", .at_least = true, .free_at_zero = true},
    {.key = "training.ema.every", .bound = "training.steps"}, /* else the averages are the weights of the start */
    {.key = "precision.grad_scaler.min_loss_scale", .bound = "precision.grad_scaler.init_scale"},
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

/* Where the samples of a step are given in addition to what makes them up. */
static void check_samples(const struct spec_node *job, struct diagnostics *diags) {
  const struct spec_node *samples = spec_find(job, "accumulation.train_batch_size");
  const struct spec_node *size = spec_find(job, "data.batch_size"), *steps = spec_find(job, "accumulation.num_steps");
  bool split = spec_find(job, "data.split_batches")->integer != 0;
  int64_t ranks = split ? 1 : parallel_data_ranks(job);
  const char *times = ranks > 1 ? " times num_steps times the ranks" : " times num_steps";
  if (samples == NULL || size->kind == SPEC_STRING || steps->kind == SPEC_STRING) return;
  if (size->integer * steps->integer * ranks == samples->integer) return;
  diag_error(diags, samples->where, "'accumulation.train_batch_size' is %lld, but data.batch_size%s is %lld",
             (long long)samples->integer, times, (long long)(size->integer * steps->integer * ranks));
  diag_help(diags, "with data.batch_size: auto or accumulation.num_steps: auto the plan divides the samples of a step");
}

/* Targets are hidden, replaced or kept. */
static void check_masking(struct arena *arena, const struct spec_node *job, struct diagnostics *diags) {
  const struct spec_node *random = spec_find(job, "data.masking.random"), *keep = spec_find(job, "data.masking.keep");
  if (random == NULL || keep == NULL || random->real + keep->real <= 1) return;
  const struct spec_node *at = keep->is_default ? random : keep;
  diag_error(
      diags, at->where,
      "'data.masking.random' and 'data.masking.keep' are fractions of the targets, but %s and %s are more than all",
      spec_number(arena, random->real, false), spec_number(arena, keep->real, false));
  diag_help(diags, "what is left of 1 becomes data.masking.mask_token");
}

/* Each path has its own labels and its own weight; what is only looked at has no weights. */
static void check_parts(const struct spec_node *job, struct diagnostics *diags) {
  static const char *const keys[] = {"data.train.labels", "data.train.weights", "data.eval.labels"};
  for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
    bool eval = strncmp(keys[i], "data.eval", 9) == 0;
    const struct spec_node *list = spec_find(job, keys[i]),
                           *path = spec_find(job, eval ? "data.eval.path" : "data.train.path");
    if (list == NULL || path == NULL || spec_count(list) == spec_count(path)) continue;
    diag_error(diags, list->where, "'%s' has %d, but there are %d paths", keys[i], spec_count(list), spec_count(path));
    diag_note(diags, path->where, "the paths are here");
    diag_help(diags, "give one for each path, in the same order");
  }
  const struct spec_node *weights = spec_find(job, "data.eval.weights");
  if (weights == NULL) return;
  diag_error(diags, weights->where,
             "'data.eval.weights' says how often samples are drawn, but an evaluation sees each once");
  diag_help(diags, "leave it out");
}

/* A key of which all values but one do not go with an optimizer. */
struct exclusion {
  const char *key, *allowed, *why, *remedy;
};

/* With rules that step within the backward, whose gradients are freed before that ends. */
static const struct exclusion in_backward[] = {
    {"optimizer.norm_type", "2", "its backward adds up squares", "optimizer.norm_type: 2"},
    {"accumulation.num_steps", "1", "every backward moves the weights", "a larger data.batch_size"},
    {"tracking.grad_norms", "global", "gradients are freed before a step ends", "tracking.grad_norms: global"},
};

static const struct exclusion of_lomo[] = {
    {"optimizer.weight_decay", "0", "its step has none", "optimizer.name: adalomo, or sgd"},
};

static void check_exclusions(const struct spec_node *job, const struct exclusion *list, size_t count,
                             struct diagnostics *diags) {
  const struct spec_node *name = spec_find(job, "optimizer.name");
  for (size_t i = 0; i < count; i++) {
    const struct spec_node *node = spec_find(job, list[i].key);
    if (node == NULL || node->is_default || spec_is(node, list[i].allowed)) continue;
    diag_error(diags, node->where, "'%s' does not go with optimizer.name '%s': %s", list[i].key, name->text,
               list[i].why);
    diag_note(diags, name->where, "'optimizer.name' is '%s' here", name->text);
    diag_help(diags, "use %s", list[i].remedy);
  }
}

static void check_optimizer(const struct spec_node *job, struct diagnostics *diags) {
  const struct spec_node *name = spec_find(job, "optimizer.name");
  if (name == NULL) return;
  bool lomo = spec_is(name, "lomo");
  if (lomo || spec_is(name, "adalomo"))
    check_exclusions(job, in_backward, sizeof in_backward / sizeof *in_backward, diags);
  if (lomo) check_exclusions(job, of_lomo, sizeof of_lomo / sizeof *of_lomo, diags);
}

/* Programs compute in float32, where a number beyond its range is infinite, and one below it 0 or of few digits. */
static void check_range(struct arena *arena, const struct spec_node *node, const char *path,
                        struct diagnostics *diags) {
  if (node->kind == SPEC_MAP || node->kind == SPEC_LIST) {
    for (int i = 0; i < node->count; i++) {
      const struct spec_entry *entry = &node->entries[i];
      bool below = node->kind == SPEC_MAP && path[0] != '\0';
      const char *inner = node->kind == SPEC_LIST ? path
                          : below                 ? arena_printf(arena, "%s.%s", path, entry->key)
                                                  : entry->key;
      check_range(arena, entry->value, inner, diags);
    }
    return;
  }
  double size = fabs(node->real);
  if (node->kind != SPEC_REAL || size == 0 || (size >= FLT_MIN && size <= FLT_MAX)) return;
  diag_error(diags, node->where, "'%s' must be a number that float32 holds, not %s", path,
             spec_number(arena, node->real, false));
  diag_help(diags, "these are 0 and from %.3g to %.3g in size", (double)FLT_MIN, (double)FLT_MAX);
}

void rules_check(struct arena *arena, const struct spec_node *job, struct diagnostics *diags) {
  for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) check_rule(arena, job, &rules[i], diags);
  check_range(arena, job, "", diags);
  check_samples(job, diags);
  check_optimizer(job, diags);
  check_masking(arena, job, diags);
  check_parts(job, diags);
  data_inputs_check(job, diags);
  parallel_check(job, diags);
  device_check(job, diags);
  quantize_check(job, diags);
  fp8_check(job, diags);
}
