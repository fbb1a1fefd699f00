/* Products in 8 bits, once there are gradients: as nodes that a device has kernels of. */
#include "gen/ir/names.h"
#include "gen/ir/op.h"
#include "gen/ir/region.h"
#include "gen/ops/support/nodes.h"
#include "gen/plan/graph/fp8.h"
#include "gen/program/fp8.h"

static bool is_product(const struct node *node) {
  return node->kind == &op_fp8_matmul || node->kind == &op_fp8_matmul_delayed || node->kind == &op_fp8_group_matmul;
}

/* Nodes that were put at the end of a region take the place of one there; the last of them makes its value. */
static void take_place(struct graph *graph, struct region *region, int index, int before) {
  struct node *node = region->nodes.items[index], *last = region->nodes.items[region->nodes.count - 1];
  last->n_outputs = 0;
  node_take_output(graph, last, node->outputs[0]);
  for (int i = before; i < region->nodes.count; i++) {
    struct node *made = region->nodes.items[region->nodes.count - 1];
    made->again = node->again;
    region->nodes.count--;
    region_insert(graph, region, index, made);
  }
  region_remove(region, node);
}

static bool is_codes(const struct value *value) {
  return value->dtype == DTYPE_UINT8;
}

/* Lets what is rounded, and what views it, be codes. */
static void store_codes(struct graph *graph) {
  bool more = true;
  while (more) {
    more = false;
    for (int r = 0; r < graph->n_regions; r++)
      for (int i = 0; i < graph->regions[r]->nodes.count; i++) {
        const struct node *node = graph->regions[r]->nodes.items[i];
        if (node->call != NULL || is_codes(node->outputs[0])) continue;
        const bool rounds = node->kind == &op_fp8_quantize || node->kind == &op_fp8_quantize_delayed;
        if (!rounds && (node->kind->class != OP_VIEW || !is_codes(node->inputs[0]))) continue;
        node->outputs[0]->dtype = DTYPE_UINT8;
        more = true;
      }
  }
}

/* A value's strides in the dense tensor that it is a view of; false: it is only a part of it. */
static bool viewed_strides(const struct value *value, int64_t *strides) {
  int64_t below[MAX_RANK], offset = 0;
  if (!value_is_view(value)) {
    shape_dense_strides(value->shape, strides);
    return true;
  }
  const struct node *node = value->producer;
  return viewed_strides(node->inputs[0], below) && node->kind->layout.view(node, below, &offset, strides) &&
         offset == 0;
}

static struct value *dense_of(struct value *value) {
  while (value_is_view(value)) value = value->producer->inputs[0];
  return value;
}

/* The matrix of codes whose columns are the rows of `value`, a matrix, where it is there without a copy. */
static struct value *turned(struct builder *builder, struct value *value) {
  int64_t strides[MAX_RANK];
  const struct shape of = shape_of(2, value->shape.dim[1], value->shape.dim[0]);
  if (value->shape.rank != 2 || !viewed_strides(value, strides) || strides[0] != 1 || strides[1] != of.dim[1])
    return NULL;
  struct value *dense = dense_of(value);
  return shape_equal(dense->shape, of) ? dense : op_reshape(builder, dense, of);
}

/* Codes whose rows are contiguous: those of `value`, or of its transpose. */
static struct value *by_rows(struct builder *builder, struct value *value) {
  struct value *other = turned(builder, value);
  return other != NULL ? op_fp8_transpose_of(builder, other) : value;
}
static struct value *by_columns(struct builder *builder, struct value *value) {
  struct value *other = turned(builder, value);
  return other != NULL ? other : op_fp8_transpose_of(builder, value);
}

/* Whether codes are of E5M2: what rounded them says. */
static bool is_e5m2(const struct value *value) {
  const struct node *made = viewed_value(value)->producer;
  return node_int(made, "e5m2") != 0;
}

static void multiply_codes(struct builder *builder, const struct node *node) {
  struct value *a = node->inputs[0], *b = node->inputs[1];
  struct value *const factors[] = {by_rows(builder, a), by_columns(builder, b), node->inputs[2], node->inputs[3]};
  const enum op_fp8_pair pair = is_e5m2(a) ? FP8_PAIR_E5M2_FIRST : is_e5m2(b) ? FP8_PAIR_E5M2_SECOND : FP8_PAIR_E4M3;
  op_fp8_multiply_with(builder, factors, pair, node->outputs[0]->dtype == DTYPE_BFLOAT16);
}

static void multiply_scaled(struct builder *builder, const struct node *node) {
  struct value *scale = op_mul(builder, node->inputs[2], node->inputs[3]);
  struct value *product = op_matmul(builder, node->inputs[0], node->inputs[1]);
  product->dtype = DTYPE_FLOAT32;
  builder_cast(builder, op_mul(builder, product, scale), node->outputs[0]->dtype);
}

static void write_product(struct builder *builder, struct region *region, int index) {
  const struct node *node = region->nodes.items[index];
  const bool codes = is_codes(node->inputs[0]);
  const int before = region->nodes.count;
  builder_at(builder, node->where);
  if (node->kind == &op_fp8_group_matmul)
    op_fp8_group_product(builder, node);
  else if (codes)
    multiply_codes(builder, node);
  else
    multiply_scaled(builder, node);
  take_place(builder_graph(builder), region, index, before);
}

void write_fp8_products(struct program *program, struct builder *builder) {
  struct graph *graph = program->graph;
  if (!program->job->precision.fp8.on) return;
  if (fp8_has_codes(program)) store_codes(graph);
  for (int r = 0; r < graph->n_regions; r++) {
    struct region *region = graph->regions[r];
    builder_enter(builder, region);
    for (int i = region->nodes.count - 1; i >= 0; i--)
      if (region->nodes.items[i]->call == NULL && is_product(region->nodes.items[i])) write_product(builder, region, i);
    builder_leave(builder);
  }
  drop_idle_casts(program);
}

void drop_idle_casts(struct program *program) {
  struct graph *graph = program->graph;
  if (!program->job->precision.fp8.on) return;
  for (int r = 0; r < graph->n_regions; r++) {
    struct region *region = graph->regions[r];
    for (int i = region->nodes.count - 1; i >= 0; i--) {
      struct node *node = region->nodes.items[i];
      if (node->call != NULL || !node->kind->types.converts) continue;
      if (node->inputs[0]->dtype != node->outputs[0]->dtype) continue;
      region_replace(region, node->outputs[0], node->inputs[0]);
      region_remove(region, node);
    }
    name_values(graph->arena, region);
  }
}
