#include "gen/plan/graph/chunk.h"

#include <stdlib.h>
#include <string.h>

#include "gen/ir/names.h"
#include "gen/ir/op.h"
#include "gen/ir/region.h"
#include "gen/plan/graph/evaluation.h"
#include "gen/plan/graph/uses.h"
#include "gen/program/choose.h"
#include "gen/program/optimizers.h"
#include "gen/program/target.h"

struct pass {
  struct program *program;
  struct graph *graph;
  struct builder *builder;
  int64_t rows; /* of a chunk; CHUNK_AUTO: by the current sizes */
  int *uses;    /* by value id, before the pass */
  int n_values;
  bool found; /* there is something to take together */
};

/* ---- The matmul that makes a value ---- */

/* The matmul with one matrix that makes a value which one operation alone uses, in its region or as the result of a
 * function that is called once; NULL when there is none. Conversions between the two do not count. */
static const struct node *find_matmul(const struct pass *pass, const struct value *value) {
  if (value->kind != VALUE_RESULT || value->id >= pass->n_values || pass->uses[value->id] != 1) return NULL;
  const struct node *node = value->producer;
  if (node->call != NULL)
    return node->call->count == 1 && graph_only_call(pass->graph, node->call->callee) == node
               ? find_matmul(pass, node->call->callee->results.items[value->index])
               : NULL;
  if (node->kind->types.converts) return find_matmul(pass, node->inputs[0]);
  return node->kind->library.matmul && node->inputs[1]->shape.rank == 2 ? node : NULL;
}

/* ---- A matmul out of a called function ---- */

static struct value *parameter_here(struct pass *pass, const struct node *call, const struct parameter *parameter) {
  const struct scope *scope = call->call->scopes[parameter->scope];
  struct builder *builder = pass->builder;
  builder_enter(builder, call->region);
  scope = builder_scope_init(builder, scope, parameter->init); /* which has decided already */
  struct region *region = call->region;
  int before = region->parameters.count;
  struct value *value = builder_parameter(builder, scope, parameter->path, parameter->shape, parameter->init);
  if (region->parameters.count > before) {
    region->parameters.items[before].moved = true;
    value->differentiable = parameter->value->differentiable;
    value->name = parameter->value->name;
  }
  builder_leave(builder);
  return value;
}

/* A copy of a node of the callee in front of position `*at` of the caller. */
static struct node *copy_here(struct pass *pass, const struct node *node, struct region *to, int *at,
                              struct value *const *inputs) {
  struct node *copy = node_new(pass->graph, node->kind, inputs, node->n_inputs, node->where);
  memcpy(copy->attributes, node->attributes, sizeof copy->attributes);
  copy->n_attributes = node->n_attributes;
  region_insert(pass->graph, to, (*at)++, copy);
  for (int i = 0; i < node->n_outputs; i++) {
    bool view = node->kind->class == OP_VIEW;
    enum dtype dtype = view ? inputs[0]->dtype : node->outputs[i]->dtype;
    struct value *value = node_output(pass->graph, copy, node->outputs[i]->shape, dtype);
    value->name = node->outputs[i]->name;
    value->differentiable = node->outputs[i]->differentiable;
  }
  return copy;
}

/* The caller's counterpart of a value of the callee: an argument, a parameter (itself where it is its copy of 16 bits),
 * a view of these, else a new result. */
static struct value *outer_value(struct pass *pass, struct node *call, int *at, struct value *value) {
  struct region *callee = call->call->callee;
  if (value->kind == VALUE_INPUT) return call->inputs[value->index];
  if (value->kind == VALUE_PARAMETER) return parameter_here(pass, call, &callee->parameters.items[value->index]);
  if (viewed_value(value)->kind != VALUE_RESULT) {
    struct value *input = outer_value(pass, call, at, value->producer->inputs[0]);
    return copy_here(pass, value->producer, call->region, at, &input)->outputs[value->index];
  }
  ARENA_PUSH(pass->graph->arena, callee->results, value);
  struct value *result = node_output(pass->graph, call, value->shape, value->dtype);
  result->name = value->name;
  result->differentiable = value->differentiable;
  return result;
}

/* Takes result `index` of a call away, which nobody uses any more. */
static void drop_result(struct node *call, int index) {
  struct region *callee = call->call->callee;
  for (int i = index; i + 1 < call->n_outputs; i++) {
    call->outputs[i] = call->outputs[i + 1];
    call->outputs[i]->index = i;
    callee->results.items[i] = callee->results.items[i + 1];
  }
  call->n_outputs--;
  callee->results.count--;
}

/* Moves what find_matmul finds to the region of the value that it ends in. */
static const struct node *fetch_matmul(struct pass *pass, struct value *value) {
  struct node *node = value->producer;
  if (node->call == NULL) return node->kind->types.converts ? fetch_matmul(pass, node->inputs[0]) : node;
  const struct node *inner = fetch_matmul(pass, node->call->callee->results.items[value->index]);
  struct value *inputs[2];
  int at = region_position(node) + 1;
  for (int i = 0; i < 2; i++) inputs[i] = outer_value(pass, node, &at, inner->inputs[i]);
  struct node *copy = copy_here(pass, inner, node->region, &at, inputs);
  drop_result(node, value->index);
  name_values(pass->graph->arena, node->call->callee);
  return copy;
}

/* ---- The two as one ---- */

/* Of `rows` rows, so many at a time that a chunk is no larger than what the matmul takes, a power of two, as Liger
 * Kernel has it; or, where that is measured to be faster, half as many, twice or four times as many. */
static int64_t choose_rows(const struct pass *pass, const struct node *node, const struct node *matmul, int64_t rows) {
  const struct value *x = matmul->inputs[0], *weight = matmul->inputs[1];
  struct arena *arena = pass->program->arena;
  int64_t depth = weight->shape.dim[0], columns = weight->shape.dim[1], usual = 1;
  const char *variants[4];
  int n_variants = 1;
  while (usual * ((columns + depth - 1) / depth) < rows) usual *= 2;
  if (usual < pass->program->target->library.bound_rows) usual = pass->program->target->library.bound_rows;
  if (!pass->program->target->kernels.has_variants || usual >= rows) return usual;
  variants[0] = arena_printf(arena, "%lld", (long long)usual);
  for (int64_t size = usual > 1 ? usual / 2 : 1; size <= 4 * usual; size *= 2)
    if (size != usual && size < rows) variants[n_variants++] = arena_printf(arena, "%lld", (long long)size);
  const char *subject =
      arena_printf(arena, "%s of %s %s%s %s", node->kind->name, matmul->kind->name, dtype_name(x->dtype),
                   shape_text(arena, x->shape), shape_text(arena, weight->shape));
  return atoll(choose(pass->program, subject, "rows of a chunk", variants, n_variants));
}

static int64_t rows_of(const struct pass *pass, const struct node *node, const struct node *matmul) {
  int64_t rows = shape_count(matmul->inputs[0]->shape) / matmul->inputs[1]->shape.dim[0];
  int64_t asked = pass->rows == CHUNK_AUTO ? choose_rows(pass, node, matmul, rows) : pass->rows;
  return asked == 0 || asked > rows ? rows : asked;
}

/* The value in a type: of a parameter the parameter or its copy of 16 bits, of a view the view of that, else a cast.
 * New nodes are at the end of the region, which is open in the builder. */
static struct value *as_type(struct pass *pass, struct region *region, struct value *value, enum dtype dtype) {
  if (value->dtype == dtype) return value;
  if (value->kind == VALUE_PARAMETER)
    return dtype_is_bits16(dtype) ? region_bits16_parameter(pass->graph, region, value->index, dtype)
                                  : region->parameters.items[value->index].value;
  if (value_is_view(value)) {
    struct value *input = as_type(pass, region, value->producer->inputs[0], dtype);
    int at = region->nodes.count;
    return copy_here(pass, value->producer, region, &at, &input)->outputs[0];
  }
  return builder_cast(pass->builder, value, dtype);
}

/* Columns of a chunk's row in memory, where the device's library wants rows to begin at certain addresses. */
static int64_t pitch_of(const struct target *target, int64_t columns, enum dtype dtype) {
  int64_t each = target->library.operand_bytes / dtype_size(dtype);
  return each > 1 ? (columns + each - 1) / each * each : columns;
}

/* The type in which a loss takes the factors of its logits. */
static enum dtype factors_of(const struct pass *pass, const struct node *matmul) {
  return pass->program->target->library.bits16_to_float32 ? matmul->inputs[0]->dtype : DTYPE_FLOAT32;
}

/* Whether whole logits would be where the library does not want them. */
static bool lies_badly(const struct pass *pass, const struct node *matmul) {
  int64_t columns = matmul->inputs[1]->shape.dim[1];
  return pitch_of(pass->program->target, columns, factors_of(pass, matmul)) != columns;
}

static void fuse_matmul(struct pass *pass, struct node *node, enum dtype dtype, int64_t rows) {
  struct region *region = node->region;
  const struct target *target = pass->program->target;
  const struct node *matmul = fetch_matmul(pass, node->inputs[0]);
  struct builder *builder = pass->builder;
  int first = region->nodes.count;
  builder_enter(builder, region);
  builder_at(builder, node->where);
  struct value *a = as_type(pass, region, matmul->inputs[0], dtype);
  struct value *b = as_type(pass, region, matmul->inputs[1], dtype);
  int64_t pitch = pitch_of(target, b->shape.dim[1], dtype);
  struct node *fused = node->kind->fusion.over_matmul(builder, node, a, b, rows, pitch);
  builder_leave(builder);
  for (int i = 0; i < node->n_outputs; i++) {
    fused->outputs[i]->name = node->outputs[i]->name;
    region_replace(region, node->outputs[i], fused->outputs[i]);
  }
  int at = region_position(node), added = region->nodes.count - first;
  for (int i = 0; i < added; i++) { /* from the end of the region to where the node was */
    struct node *last = region->nodes.items[region->nodes.count - 1];
    region->nodes.count--;
    region_insert(pass->graph, region, at, last);
  }
  region_remove(region, node);
  name_values(pass->graph->arena, region);
}

/* Whether a loss is to be taken together with its matmul: of some rows, or of all where that is the device's way. */
static bool is_wanted(const struct pass *pass, const struct node *matmul, int64_t rows) {
  const struct target *target = pass->program->target;
  int64_t depth = matmul->inputs[1]->shape.dim[0], columns = matmul->inputs[1]->shape.dim[1];
  bool own_way = pass->rows == CHUNK_AUTO && target->library.bound_rows > 0 && columns > depth;
  return pass->rows > 0 || own_way || rows * depth < shape_count(matmul->inputs[0]->shape);
}

/* Takes the region's losses together with their matmuls, or only says how many it would. */
static int chunk_region(struct pass *pass, struct region *region, bool only_count) {
  int count = 0;
  for (int i = 0; i < region->nodes.count; i++) {
    struct node *node = region->nodes.items[i];
    const struct node *matmul = node->kind->fusion.over_matmul != NULL ? find_matmul(pass, node->inputs[0]) : NULL;
    if (matmul == NULL) continue;
    int64_t rows = rows_of(pass, node, matmul);
    pass->found = true;
    if (!is_wanted(pass, matmul, rows) && !lies_badly(pass, matmul)) continue;
    count++;
    if (!only_count) fuse_matmul(pass, node, factors_of(pass, matmul), rows);
  }
  return count;
}

static int chunk_regions(struct pass *pass, bool only_count) {
  int count = 0;
  pass->n_values = pass->graph->next_value;
  pass->uses = count_uses(pass->program->arena, pass->graph);
  for (int r = 0; r < pass->graph->n_regions; r++) count += chunk_region(pass, pass->graph->regions[r], only_count);
  return count;
}

/* Whether what is trained may come to give its loss with the gradients alone, and is evaluated as it is so far. */
static bool evaluates_entry(const struct program *program) {
  return program->kind == PROGRAM_TRAIN && job_evaluates(program->job) && program->entry.second_region == NULL &&
         !job_optimizer(program->job)->in_backward;
}

int64_t chunk_wanted(const struct job *job) {
  int64_t rows = job->memory.cross_entropy_chunk;
  if (rows != CHUNK_DEVICE) return rows;
  return target_of(job)->library.bound_rows > 0 ? CHUNK_AUTO : 0;
}

bool chunk_losses(struct program *program, struct builder *builder, struct diagnostics *diags) {
  int64_t rows = chunk_wanted(program->job);
  if (rows == 0 && program->target->library.operand_bytes == 0) return true;
  struct pass pass = {.program = program, .graph = program->graph, .builder = builder, .rows = rows};
  if (evaluates_entry(program) && chunk_regions(&pass, true) > 0) part_evaluation(program, builder);
  chunk_regions(&pass, false);
  if (pass.found || rows <= 0 || program->kind != PROGRAM_TRAIN) return true;
  diag_error(diags, job_where(program->job, "memory.cross_entropy_chunk"),
             "the model has no cross_entropy over the result of a matmul that nothing else uses");
  diag_help(diags, "let its logits come from linear_no_bias or matmul_transposed, or remove the key");
  return false;
}
