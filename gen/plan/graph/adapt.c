#include "gen/plan/graph/adapt.h"

#include <math.h>
#include <string.h>

#include "gen/base/path.h"
#include "gen/ir/op.h"
#include "gen/ops/support/nodes.h"
#include "gen/plan/graph/split.h"
#include "gen/plan/graph/weight_visitor.h"
#include "gen/program/adapters.h"
#include "gen/program/match.h"

static const char weight_ending[] = ".weight";

/* ---- Modules by name ---- */

/* The path of the module whose weight this is; NULL for other parameters. */
static const char *module_of(struct arena *arena, const char *name) {
  return without_ending(arena, name, weight_ending);
}

/* ---- Which matmuls ---- */

/* The parameter whose matrix a matmul's right side is, among those of its region; -1: none. */
static int matmul_weight(const struct node *node) {
  if (!node->kind->library.matmul || node->inputs[1]->shape.rank != 2) return -1;
  const struct value *b = viewed_value(node->inputs[1]);
  return b->kind == VALUE_PARAMETER && b->shape.rank == 2 ? b->index : -1;
}

static bool is_in_matmul(const struct region *region, int parameter) {
  for (int i = 0; i < region->nodes.count; i++)
    if (matmul_weight(region->nodes.items[i]) == parameter) return true;
  return false;
}

struct adapting {
  struct program *program;
  struct builder *builder;
  const struct job *job;
  struct name_list modules; /* with a matmul */
  bool *used;               /* by target */
};

static void collect(struct weight_visitor *visitor, const struct region *region, const struct node *after,
                    const char *const *prefixes) {
  struct adapting *adapting = visitor->context;
  struct arena *arena = visitor->program->arena;
  for (int i = 0; after == NULL && i < region->parameters.count; i++) {
    const struct parameter *p = &region->parameters.items[i];
    const char *module = module_of(arena, weight_path(arena, prefixes[p->scope], p->path));
    if (module == NULL || !is_in_matmul(region, i)) continue;
    ARENA_PUSH(arena, adapting->modules, module);
    for (int k = 0; k < adapting->job->model.lora.n_targets; k++)
      adapting->used[k] |= names_module(adapting->job->model.lora.targets[k].name, module);
  }
}

static bool check_targets(struct adapting *adapting, struct diagnostics *diags) {
  struct program *program = adapting->program;
  const struct named *targets = adapting->job->model.lora.targets;
  int n = adapting->job->model.lora.n_targets, before = diags->errors;
  for (int i = 0; i < n; i++) name_pattern_check(targets[i].name, targets[i].where, diags);
  if (diags->errors > before) return false;
  adapting->used = arena_alloc(program->arena, ((size_t)n + 1) * sizeof *adapting->used);
  struct weight_visitor visitor = {
      .program = program, .diags = diags, .ok = true, .visit = collect, .context = adapting};
  weight_visit_from(&visitor, program->graph->entry);
  for (int i = 0; i < n; i++) {
    if (adapting->used[i]) continue;
    diag_error(diags, targets[i].where, "'%s' names no module whose weight is a factor of a matmul", targets[i].name);
    if (adapting->modules.count > 0) diag_help(diags, "modules are such as %s", adapting->modules.items[0]);
  }
  return diags->errors == before;
}

/* ---- The adapters ---- */

static struct treatment treat(void *context, const struct parameter *parameter, const char *name) {
  const struct adapting *adapting = context;
  const char *module = module_of(adapting->program->arena, name);
  bool adapted = false;
  for (int i = 0; module != NULL && i < adapting->job->model.lora.n_targets; i++)
    adapted |= names_module(adapting->job->model.lora.targets[i].name, module);
  return (struct treatment){.mark = adapted && parameter->shape.rank == 2 ? 'a' : '-', .trains = true};
}

/* The module that `weight` belongs to, below its scope; "" where that is the module's own. */
static const char *module_below_scope(struct arena *arena, const struct parameter *weight) {
  const char *module = module_of(arena, weight->path);
  return module != NULL ? module : "";
}

/* A parameter of the adapter of the module that `weight` belongs to. */
static struct value *part(struct adapting *adapting, const struct parameter *weight, const char *name,
                          struct shape shape, struct initializer init) {
  struct scope scope = {.region = weight->value->region,
                        .formal = weight->scope,
                        .path = module_below_scope(adapting->program->arena, weight)};
  return builder_parameter(adapting->builder, &scope, name, shape, init);
}

/* The random streams of adapters are numbered after those that the model's own nodes have in a region. */
static const int64_t first_site = (int64_t)1 << 16;

/* A starts as torch.nn.Linear's weight, B at 0. */
static struct value *extend(void *context, const struct node *node, const char *marks) {
  struct adapting *adapting = context;
  struct builder *builder = adapting->builder;
  int index = matmul_weight(node);
  if (index < 0 || marks[index] != 'a') return NULL;
  const struct parameter weight = node->region->parameters.items[index];
  struct value *x = node->inputs[0];
  int64_t in = node->inputs[1]->shape.dim[0], out = node->inputs[1]->shape.dim[1],
          rank = adapting->job->model.lora.rank;
  double bound = 1 / sqrt((double)in);
  builder_enter(builder, node->region);
  builder_at(builder, node->where);
  if (adapting->job->model.lora.dropout > 0)
    x = op_dropout(builder, x, adapting->job->model.lora.dropout, first_site + builder_random_count(builder));
  struct value *a = part(adapting, &weight, "lora_A.weight", shape_of(2, rank, in),
                         (struct initializer){INIT_UNIFORM, -bound, bound});
  struct value *b =
      part(adapting, &weight, "lora_B.weight", shape_of(2, out, rank), (struct initializer){.kind = INIT_ZEROS});
  struct value *low = op_matmul(builder, x, op_matrix_transpose(builder, a));
  struct value *change =
      op_scale(builder, op_matmul(builder, low, op_matrix_transpose(builder, b)), adapter_scale(adapting->job));
  struct value *y = op_add(builder, node->outputs[0], change);
  builder_leave(builder);
  return y;
}

/* ---- The list for the program ---- */

static bool is_listed(const struct program *program, const char *module) {
  for (int i = 0; i < program->adapters.count; i++)
    if (strcmp(program->adapters.items[i].module, module) == 0) return true;
  return false;
}

/* Whether the region has the A of the module that `weight` belongs to. */
static bool has_adapter(struct arena *arena, const struct region *region, const struct parameter *weight) {
  const char *a = weight_path(arena, module_below_scope(arena, weight), adapter_a_ending + 1);
  for (int i = 0; i < region->parameters.count; i++) {
    const struct parameter *p = &region->parameters.items[i];
    if (p->scope == weight->scope && strcmp(p->path, a) == 0) return true;
  }
  return false;
}

/* A weight is [in][out] where the matmul takes it as it is. */
static void list(struct weight_visitor *visitor, const struct region *region, const struct node *after,
                 const char *const *prefixes) {
  struct program *program = visitor->program;
  int index = after != NULL ? matmul_weight(after) : -1;
  if (index < 0) return;
  const struct parameter *p = &region->parameters.items[index];
  const char *module = module_of(program->arena, weight_path(program->arena, prefixes[p->scope], p->path));
  if (module == NULL || !has_adapter(program->arena, region, p) || is_listed(program, module)) return;
  struct adapter adapter = {.module = module, .in_out = after->inputs[1]->kind == VALUE_PARAMETER};
  ARENA_PUSH(program->arena, program->adapters, adapter);
}

bool adapt(struct program *program, struct builder *builder, struct diagnostics *diags) {
  const struct job *job = program->job;
  struct adapting adapting = {.program = program, .builder = builder, .job = job};
  if (job->model.lora.rank == 0) return true;
  if (!check_targets(&adapting, diags)) return false;
  split_regions(program->graph, &(struct splitting){.context = &adapting, .treat = treat, .extend = extend});
  struct weight_visitor visitor = {.program = program, .diags = diags, .ok = true, .visit = list};
  weight_visit_from(&visitor, program->graph->entry);
  return true;
}
