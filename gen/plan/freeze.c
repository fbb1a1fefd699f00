#include "gen/plan/freeze.h"

#include <string.h>

#include "gen/base/text.h"
#include "gen/ir/names.h"
#include "gen/ir/op.h"
#include "gen/ir/region.h"
#include "gen/plan/match.h"

struct freezing {
  struct graph *graph;
  const struct job *job;
  struct value **map; /* by id: what stands for a value of the regions as the model made them */
  bool *matches;      /* by pattern */
  struct name_list names;
  bool trains; /* some parameter is left */
};

bool is_frozen(const struct job *job, const char *name) {
  for (int i = 0; i < job->model.n_freeze; i++)
    if (name_matches(job->model.freeze[i].name, name)) return true;
  return false;
}

static const char *join(struct arena *arena, const char *prefix, const char *path) {
  if (prefix[0] == '\0') return path;
  return path[0] == '\0' ? prefix : arena_printf(arena, "%s.%s", prefix, path);
}

/* The absolute names of a callee's scopes in one iteration. */
static const char **inner_prefixes(struct arena *arena, const struct call *call, int iteration,
                                   const char *const *prefixes) {
  const char **inner = arena_alloc(arena, ((size_t)call->callee->n_scopes + 1) * sizeof *inner);
  for (int i = 0; i < call->callee->n_scopes; i++) {
    const struct scope *scope = call->scopes[i * call->count + iteration];
    inner[i] = join(arena, prefixes[scope->formal], scope->path);
  }
  return inner;
}

/* ---- Which parameters ---- */

/* A letter for each parameter below a region, f or t: frozen, trained. */
static void sign(const struct freezing *freezing, const struct region *region, const char *const *prefixes,
                 struct text *text) {
  struct arena *arena = freezing->graph->arena;
  for (int i = 0; i < region->parameters.count; i++) {
    const struct parameter *p = &region->parameters.items[i];
    text_puts(text, is_frozen(freezing->job, join(arena, prefixes[p->scope], p->path)) ? "f" : "t");
  }
  for (int i = 0; i < region->nodes.count; i++) {
    const struct call *call = region->nodes.items[i]->call;
    for (int k = 0; call != NULL && k < call->count; k++)
      sign(freezing, call->callee, inner_prefixes(arena, call, k, prefixes), text);
  }
}

static const char *signature(const struct freezing *freezing, const struct region *region,
                             const char *const *prefixes) {
  struct text text = text_in(freezing->graph->arena);
  sign(freezing, region, prefixes, &text);
  return text_string(&text);
}

/* ---- Regions with some parameters frozen ---- */

static struct region *freeze_region(struct freezing *freezing, const struct region *from, const char *const *prefixes,
                                    const bool *flags);

static bool outputs_differentiable(const struct node *node) {
  bool any = false;
  for (int i = 0; i < node->n_inputs; i++) any |= node->inputs[i]->differentiable;
  return any && node->kind->gradient != NULL;
}

static void freeze_node(struct freezing *freezing, const struct node *node, struct region *to) {
  struct node *copy = node_copy(freezing->graph, node, to, freezing->map);
  for (int i = 0; i < copy->n_outputs; i++)
    copy->outputs[i]->differentiable = dtype_is_float(copy->outputs[i]->dtype) && outputs_differentiable(copy);
}

/* Iterations [first, first + count) of a call. `inputs` are those of the first of them, and become those that an
 * iteration behind them would have; the outputs replace those of the call. */
static void freeze_run(struct freezing *freezing, const struct node *node, int first, int count,
                       const char *const *prefixes, struct value **inputs, struct region *to) {
  struct graph *graph = freezing->graph;
  const struct call *call = node->call;
  const char **inner = inner_prefixes(graph->arena, call, first, prefixes);
  bool *flags = arena_alloc(graph->arena, ((size_t)node->n_inputs + 1) * sizeof *flags);
  bool flows = strchr(signature(freezing, call->callee, inner), 't') != NULL;
  for (int i = 0; i < node->n_inputs; i++) flows |= flags[i] = inputs[i]->differentiable;
  for (int i = 0; i < node->n_inputs && count > 1; i++) /* what one iteration gives depends on what it was given */
    if (call->carry[i] >= 0) flags[i] |= flows && dtype_is_float(inputs[i]->dtype);
  struct node *run = node_new(graph, &op_call, inputs, node->n_inputs, node->where);
  run->call = arena_alloc(graph->arena, sizeof *run->call);
  *run->call = *call;
  run->call->callee = freeze_region(freezing, call->callee, inner, flags);
  run->call->count = count;
  run->call->first += call->step * first;
  int n_scopes = call->callee->n_scopes;
  run->call->scopes = arena_alloc(graph->arena, ((size_t)n_scopes * (size_t)count + 1) * sizeof(struct scope *));
  for (int i = 0; i < n_scopes; i++)
    for (int k = 0; k < count; k++) run->call->scopes[i * count + k] = call->scopes[i * call->count + first + k];
  region_append(graph, to, run);
  for (int i = 0; i < node->n_outputs; i++) {
    struct value *output = node_output(graph, run, node->outputs[i]->shape, node->outputs[i]->dtype);
    output->name = node->outputs[i]->name;
    output->differentiable = run->call->callee->results.items[i]->differentiable;
    freezing->map[node->outputs[i]->id] = output;
  }
  for (int i = 0; i < node->n_inputs && call->count > 1; i++)
    if (call->carry[i] >= 0) inputs[i] = run->outputs[call->carry[i]];
}

static void freeze_call(struct freezing *freezing, const struct node *node, const char *const *prefixes,
                        struct region *to) {
  struct arena *arena = freezing->graph->arena;
  const struct call *call = node->call;
  struct value **inputs = arena_alloc(arena, ((size_t)node->n_inputs + 1) * sizeof *inputs);
  for (int i = 0; i < node->n_inputs; i++) inputs[i] = freezing->map[node->inputs[i]->id];
  for (int first = 0, end; first < call->count; first = end) {
    const char *own = signature(freezing, call->callee, inner_prefixes(arena, call, first, prefixes));
    for (end = first + 1; end < call->count; end++)
      if (strcmp(own, signature(freezing, call->callee, inner_prefixes(arena, call, end, prefixes))) != 0) break;
    freeze_run(freezing, node, first, end - first, prefixes, inputs, to);
  }
}

static void copy_operands(struct freezing *freezing, const struct region *from, const char *const *prefixes,
                          const bool *flags, struct region *to) {
  struct graph *graph = freezing->graph;
  for (int i = 0; i < from->inputs.count; i++) {
    const struct value *input = from->inputs.items[i];
    struct value *copy = region_input(graph, to, input->shape, input->dtype);
    copy->name = input->name;
    copy->differentiable = flags[i];
    freezing->map[input->id] = copy;
  }
  for (int i = 0; i < from->parameters.count; i++) {
    struct parameter parameter = from->parameters.items[i];
    const struct value *original = parameter.value;
    parameter.value = value_new(graph, to, VALUE_PARAMETER, i, original->shape, original->dtype);
    parameter.value->name = original->name;
    parameter.value->differentiable =
        !is_frozen(freezing->job, join(graph->arena, prefixes[parameter.scope], parameter.path));
    freezing->map[original->id] = parameter.value;
    ARENA_PUSH(graph->arena, to->parameters, parameter);
  }
}

static struct region *freeze_region(struct freezing *freezing, const struct region *from, const char *const *prefixes,
                                    const bool *flags) {
  struct graph *graph = freezing->graph;
  struct region *to = region_new(graph->arena, from->function, from->where, from->n_scopes);
  to->name = from->name;
  copy_operands(freezing, from, prefixes, flags, to);
  for (int i = 0; i < from->nodes.count; i++) {
    if (from->nodes.items[i]->call != NULL)
      freeze_call(freezing, from->nodes.items[i], prefixes, to);
    else
      freeze_node(freezing, from->nodes.items[i], to);
  }
  for (int i = 0; i < from->results.count; i++)
    ARENA_PUSH(graph->arena, to->results, freezing->map[from->results.items[i]->id]);
  struct region *known = graph_find_equal(graph, to);
  if (known != NULL) return known;
  name_values(graph->arena, to);
  graph_add(graph, to);
  return to;
}

/* ---- What the job asked for ---- */

static void collect(struct freezing *freezing, const struct region *region, const char *const *prefixes) {
  struct arena *arena = freezing->graph->arena;
  for (int i = 0; i < region->parameters.count; i++) {
    const struct parameter *p = &region->parameters.items[i];
    const char *name = join(arena, prefixes[p->scope], p->path);
    ARENA_PUSH(arena, freezing->names, name);
    freezing->trains |= !is_frozen(freezing->job, name);
    for (int k = 0; k < freezing->job->model.n_freeze; k++)
      freezing->matches[k] |= name_matches(freezing->job->model.freeze[k].name, name);
  }
  for (int i = 0; i < region->nodes.count; i++) {
    const struct call *call = region->nodes.items[i]->call;
    for (int k = 0; call != NULL && k < call->count; k++)
      collect(freezing, call->callee, inner_prefixes(arena, call, k, prefixes));
  }
}

static bool check_patterns(struct freezing *freezing, const char *const *root, struct diagnostics *diags) {
  const struct job *job = freezing->job;
  int before = diags->errors;
  for (int i = 0; i < job->model.n_freeze; i++)
    name_pattern_check(job->model.freeze[i].name, job->model.freeze[i].where, diags);
  if (diags->errors > before) return false;
  freezing->matches = arena_alloc(freezing->graph->arena, ((size_t)job->model.n_freeze + 1) * sizeof(bool));
  collect(freezing, freezing->graph->entry, root);
  for (int i = 0; i < job->model.n_freeze; i++)
    if (!freezing->matches[i])
      name_pattern_unmatched(freezing->graph->arena, job->model.freeze[i].name, &freezing->names,
                             job->model.freeze[i].where, diags);
  if (diags->errors > before) return false;
  if (freezing->trains) return true;
  diag_error(diags, job->model.freeze[0].where, "all parameters are frozen: nothing is left to train");
  return false;
}

bool freeze(struct program *program, struct diagnostics *diags) {
  struct graph *graph = program->graph;
  struct freezing freezing = {.graph = graph, .job = program->job};
  static const char *const root[] = {""};
  if (program->job->model.n_freeze == 0) return true;
  if (!check_patterns(&freezing, root, diags)) return false;
  freezing.map = arena_alloc(graph->arena, ((size_t)graph->next_value + 1) * sizeof *freezing.map);
  const struct region *entry = graph->entry;
  bool *flags = arena_alloc(graph->arena, ((size_t)entry->inputs.count + 1) * sizeof *flags);
  graph->regions = NULL;
  graph->n_regions = graph->regions_capacity = 0;
  graph->entry = freeze_region(&freezing, entry, root, flags);
  return true;
}
