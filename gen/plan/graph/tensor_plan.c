#include "gen/plan/graph/tensor_plan.h"

#include <string.h>

#include "gen/ir/op.h"
#include "gen/plan/graph/weight_visitor.h"
#include "gen/program/match.h"

/* Matrices side by side in one, such as queries, keys and values. */
enum { MOST_BLOCKS = 8 };

/* A parameter, by the first name that it has, and its rule. */
struct planned {
  const struct parameter *parameter;
  const struct region *region;
  const char *name;
  const struct tensor_rule *rule; /* NULL: none */
};

struct plan {
  struct placements *placements;
  const struct job *job;
  struct diagnostics *diags;
  struct planned *items;
  int count, capacity;
  struct name_list names;
  bool *matched, *owns; /* by rule: some parameter, which is of no rule before it */
};

/* ---- Which rule ---- */

/* Also without the first part of the name, which transformers' plans of a base model do not have. */
static bool matches_base(const char *match, const char *name) {
  const char *dot = strchr(name, '.');
  return name_matches(match, name) || (dot != NULL && name_matches(match, dot + 1));
}

/* A parameter's name, or its module's. */
static bool matches(struct arena *arena, const char *match, const char *name) {
  const char *dot = strrchr(name, '.');
  return matches_base(match, name) ||
         (dot != NULL && matches_base(match, arena_copy(arena, name, (size_t)(dot - name))));
}

static const struct tensor_rule *rule_of(struct plan *plan, const char *name) {
  const struct tensor_rule *rules = plan->job->parallelism.tensor_rules;
  int first = -1;
  for (int i = plan->job->parallelism.n_tensor_rules - 1; i >= 0; i--) {
    if (!matches(plan->placements->program->arena, rules[i].match, name)) continue;
    plan->matched[i] = true;
    first = i;
  }
  if (first < 0) return NULL;
  plan->owns[first] = true;
  return &rules[first];
}

/* A function that computes several layers lays their parameters alike. */
static void check_alike(const struct plan *plan, const struct planned *known, const struct tensor_rule *rule,
                        const char *name) {
  if (known->rule == rule || plan->diags->errors > 0) return;
  diag_error(plan->diags, (rule != NULL ? rule : known->rule)->where,
             "'%s' and '%s' would be placed differently, and one function of the program computes both", known->name,
             name);
  diag_help(plan->diags, "write * for the numbers of layers");
}

static void note(struct plan *plan, const struct region *region, const struct parameter *parameter, const char *name) {
  const struct tensor_rule *rule = rule_of(plan, name);
  ARENA_PUSH(plan->placements->program->arena, plan->names, name);
  for (int i = 0; i < plan->count; i++) {
    if (plan->items[i].parameter != parameter) continue;
    check_alike(plan, &plan->items[i], rule, name);
    return;
  }
  ARENA_PUSH(plan->placements->program->arena, *plan, ((struct planned){parameter, region, name, rule}));
}

static void visit(struct weight_visitor *visitor, const struct region *region, const struct node *after,
                  const char *const *prefixes) {
  for (int i = 0; after == NULL && i < region->parameters.count; i++) {
    const struct parameter *p = &region->parameters.items[i];
    if (!p->buffer)
      note(visitor->context, region, p, weight_path(visitor->program->arena, prefixes[p->scope], p->path));
  }
}

static void check_matches(const struct plan *plan) {
  struct arena *arena = plan->placements->program->arena;
  for (int i = 0; i < plan->job->parallelism.n_tensor_rules; i++) {
    const struct tensor_rule *rule = &plan->job->parallelism.tensor_rules[i];
    if (!plan->matched[i])
      name_pattern_unmatched(arena, rule->match, &plan->names, rule->where, plan->diags);
    else if (!plan->owns[i])
      diag_error(plan->diags, rule->where, "all parameters that '%s' matches belong to patterns before it",
                 rule->match);
  }
}

/* Finds the rule of each parameter. */
static bool open_plan(struct plan *plan, struct placements *placements, struct diagnostics *diags) {
  struct program *program = placements->program;
  const struct job *job = program->job;
  int before = diags->errors;
  size_t rules = (size_t)job->parallelism.n_tensor_rules + 1;
  *plan = (struct plan){.placements = placements, .job = job, .diags = diags};
  plan->matched = arena_alloc(program->arena, rules * sizeof *plan->matched);
  plan->owns = arena_alloc(program->arena, rules * sizeof *plan->owns);
  for (int i = 0; i < job->parallelism.n_tensor_rules; i++)
    name_pattern_check(job->parallelism.tensor_rules[i].match, job->parallelism.tensor_rules[i].where, diags);
  if (diags->errors > before) return false;
  struct weight_visitor visitor = {.program = program, .diags = diags, .ok = true, .visit = visit, .context = plan};
  weight_visit_from(&visitor, program->graph->entry);
  check_matches(plan);
  return diags->errors == before;
}

/* ---- Placements ---- */

static bool is_of(const struct parameter *parameter, const struct value *value) {
  const struct value *root = viewed_value(value);
  return root == parameter->value || (parameter->bits16 != NULL && root == parameter->bits16);
}

/* Whether a node multiplies by a parameter. */
static bool multiplies(const struct node *node, const struct parameter *parameter) {
  return node->call == NULL && node->kind->library.matmul && node->n_inputs > 1 && is_of(parameter, node->inputs[1]);
}

/* Whether a node looks up rows of a parameter: it is divided by these, and what multiplies by it follows. */
static bool looks_up(const struct node *node, const struct parameter *parameter) {
  int input, dim;
  if (node->call != NULL || node->kind->ranks.tried == NULL || multiplies(node, parameter)) return false;
  return node->kind->ranks.tried(node, &input, &dim) && is_of(parameter, node->inputs[input]);
}

/* Splits a dimension of a matrix, which may be split already. */
static bool split(const struct plan *plan, const struct value *matrix, int dim) {
  const struct placement has = placement_of(plan->placements, matrix);
  plan->placements->needs = NULL;
  if (has.form == PLACED_SPLIT) return has.dim == dim;
  return try_placement(plan->placements, matrix, dim, MOST_BLOCKS);
}

static void refuse(const struct plan *plan, const struct planned *item) {
  const struct node *needs = plan->placements->needs;
  const struct shape shape = item->parameter->value->shape;
  diag_error(plan->diags, item->rule->where, "%lld ranks of parallelism.tp cannot have '%s', %s, as '%s'",
             (long long)plan->placements->ranks, item->name, shape_text(plan->placements->program->arena, shape),
             item->rule->word);
  if (needs != NULL)
    diag_note(plan->diags, needs->where, "'%s' would need a tensor whole that they shard, or in parts of another kind",
              needs->kind->name);
  else
    diag_note(plan->diags, item->region->where,
              "their parts would not be equal, or another pattern lays it otherwise, or no matmul has it");
  if (item->rule->replicated)
    diag_help(plan->diags, "leave the pattern out: 'accel-gen plan' reports what the ranks shard without it");
  else
    diag_help(plan->diags, "leave it out, or write '%s': then ranks %s",
              item->rule->style == TENSOR_COLUMNS ? "colwise_gather_output" : "rowwise_split_input",
              item->rule->style == TENSOR_COLUMNS ? "gather the columns of the matmul"
                                                  : "take their columns of an input that each has whole");
}

/* Lets ranks gather the columns that a matmul gives, or take their columns of its input; false where these are split
 * for another rule. */
static bool set_replicated(struct placements *placements, const struct node *node, bool columns) {
  const struct value *whole = columns ? node->outputs[0] : node->inputs[0];
  (columns ? placements->gathers : placements->takes)[node->id] = true;
  placements->stays_whole[whole->id] = true;
  return placement_of(placements, whole).form != PLACED_SPLIT;
}

/* Columns or rows of the matmuls by a parameter; without one, of the table that it is. */
static bool place_matrix(const struct plan *plan, const struct planned *item) {
  const bool columns = item->rule->style == TENSOR_COLUMNS;
  const struct parameter *p = item->parameter;
  int matmuls = 0, tables = 0;
  for (int i = 0; i < item->region->nodes.count; i++) {
    const struct node *node = item->region->nodes.items[i];
    matmuls += multiplies(node, p);
    tables += looks_up(node, p);
  }
  if (matmuls == 0 || tables > 0) return split(plan, p->value, columns ? p->value->shape.rank - 1 : 0);
  for (int i = 0; i < item->region->nodes.count; i++) {
    const struct node *node = item->region->nodes.items[i];
    if (!multiplies(node, p)) continue;
    if (item->rule->replicated && !set_replicated(plan->placements, node, columns)) return false;
    if (!split(plan, node->inputs[1], node->inputs[1]->shape.rank - (columns ? 1 : 2))) return false;
  }
  return true;
}

/* Vectors, such as biases, follow the matmuls that they belong to. */
static bool place(const struct plan *plan, const struct planned *item) {
  const bool divides = item->rule != NULL && item->rule->style <= TENSOR_ROWS;
  if (!divides || item->parameter->value->shape.rank < 2 || place_matrix(plan, item)) return true;
  refuse(plan, item);
  return false;
}

static void leave_whole(const struct plan *plan, const struct planned *item) {
  if (item->rule == NULL || item->rule->style != TENSOR_WHOLE) return;
  plan->placements->stays_whole[item->parameter->value->id] = true;
  if (item->parameter->bits16 != NULL) plan->placements->stays_whole[item->parameter->bits16->id] = true;
}

bool place_by_plan(struct placements *placements, struct diagnostics *diags) {
  struct plan plan;
  const struct job *job = placements->program->job;
  bool good = true;
  if (job->parallelism.n_tensor_rules == 0) return true;
  if (!open_plan(&plan, placements, diags)) return false;
  for (int i = 0; i < plan.count; i++) leave_whole(&plan, &plan.items[i]);
  for (int k = 0; good && k < job->parallelism.n_tensor_rules; k++)
    for (int i = 0; good && i < plan.count; i++)
      if (plan.items[i].rule == &job->parallelism.tensor_rules[k]) good = place(&plan, &plan.items[i]);
  return good;
}

/* ---- Positions ---- */

static bool has_positions(const struct planned *item, struct placement *const *nodes) {
  for (int i = 0; i < item->region->nodes.count; i++) {
    const struct node *node = item->region->nodes.items[i];
    const struct placement *operands = nodes[node->id];
    for (int k = 0; k < node->n_inputs; k++) {
      if (!is_of(item->parameter, node->inputs[k]) || value_is_view(node->outputs[0])) continue;
      if (operands == NULL || operands[node->n_inputs].form != PLACED_SPLIT) return false;
      if (operands[node->n_inputs].dim == node->outputs[0]->shape.rank - 1) return false;
    }
  }
  return true;
}

bool check_plan_of_positions(struct placements *placements, struct placement *const *nodes, struct diagnostics *diags) {
  struct plan plan;
  const struct job *job = placements->program->job;
  if (job->parallelism.n_tensor_rules == 0 || placements->program->kind == PROGRAM_GENERATE) return true;
  if (!open_plan(&plan, placements, diags)) return false;
  for (int i = 0; i < plan.count; i++) {
    const struct planned *item = &plan.items[i];
    if (item->rule == NULL || item->rule->style != TENSOR_POSITIONS || has_positions(item, nodes)) continue;
    diag_error(diags, item->rule->where, "what uses '%s' has all positions on each rank", item->name);
    diag_help(diags, job->parallelism.splits_sequence
                         ? "only what is between the matmuls that ranks divide has parts of the positions"
                         : "set parallelism.megatron.sequence_parallelism: true");
    return false;
  }
  return true;
}
