#include "gen/spec/tensor_plan.h"

#include <string.h>

#include "gen/spec/mesh.h"

/* The words of a style: ours, and those of transformers' base_model_tp_plan. */
static const struct style_word {
  const char *word;
  enum tensor_style style;
  bool replicated;
} words[] = {
    {"colwise", TENSOR_COLUMNS, false},
    {"rowwise", TENSOR_ROWS, false},
    {"replicate", TENSOR_WHOLE, false},
    {"sequence", TENSOR_POSITIONS, false},
    {"colwise_gather_output", TENSOR_COLUMNS, true},
    {"colwise_rep", TENSOR_COLUMNS, true},
    {"rowwise_split_input", TENSOR_ROWS, true},
    {"rowwise_rep", TENSOR_ROWS, true},
    {"embedding_rowwise", TENSOR_ROWS, false},
    {"packed_colwise", TENSOR_COLUMNS, false},
    {"packed_rowwise", TENSOR_ROWS, false},
    {"local_colwise", TENSOR_COLUMNS, false},
    {"local_rowwise", TENSOR_ROWS, false},
    {"local_packed_rowwise", TENSOR_ROWS, false},
    {"sequence_parallel", TENSOR_POSITIONS, false},
};

static const struct style_word *word_of(const char *text) {
  size_t i = 0;
  while (i + 1 < sizeof words / sizeof *words && strcmp(words[i].word, text) != 0) i++;
  return &words[i];
}

void tensor_plan_check(const struct spec_node *job, struct diagnostics *diags) {
  const struct spec_node *plan = spec_find(job, "parallelism.tp_plan");
  if (plan == NULL || axis_length(job, AXIS_TP) > 1) return;
  diag_error(diags, plan->where, "'parallelism.tp_plan' names what ranks along tp shard, and there are no such ranks");
  diag_help(diags, "set parallelism.tp, or leave it out");
}

static struct tensor_rule rule_of(const struct spec_node *node) {
  const struct spec_node *match = spec_find(node, "match"), *style = spec_find(node, "style");
  const struct style_word *word = word_of(style->text);
  return (struct tensor_rule){match->text, word->word, word->style, word->replicated, match->where};
}

void tensor_plan_bind(struct arena *arena, struct job *job) {
  const struct spec_node *plan = spec_find(job->tree, "parallelism.tp_plan");
  int count = plan == NULL ? 0 : plan->count;
  struct tensor_rule *rules = arena_alloc(arena, ((size_t)count + 1) * sizeof *rules);
  for (int i = 0; i < count; i++) rules[i] = rule_of(plan->entries[i].value);
  job->parallelism.tensor_rules = rules;
  job->parallelism.n_tensor_rules = count;
}
