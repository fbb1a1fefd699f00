#include "gen/onnx/make.h"

#include <string.h>

#include "gen/onnx/state.h"

enum { VALUE_NAME = 1, VALUE_TYPE = 2, TYPE_TENSOR = 1, TENSOR_ELEMENT = 1, TENSOR_SHAPE = 2, SHAPE_DIM = 1 };
enum { DIM_VALUE = 1, DIM_NAME = 2 };

/* ---- The graphs at all sizes ---- */

static bool fail_at(struct onnx *onnx, const struct node *node, const char *what) {
  diag_error(onnx->diags, node->where, "%s changes with the length of the sequence, or with the batch", what);
  diag_help(onnx->diags, "--sequence N and --batch N fix them");
  return false;
}

static bool is_node_alike(const struct flat_node *a, const struct flat_node *b) {
  bool alike = a->node->kind == b->node->kind && a->node->n_inputs == b->node->n_inputs &&
               a->node->n_outputs == b->node->n_outputs && a->node->n_attributes == b->node->n_attributes;
  for (int i = 0; alike && i < a->node->n_inputs; i++)
    alike = a->inputs[i] == b->inputs[i] && a->node->inputs[i]->shape.rank == b->node->inputs[i]->shape.rank;
  return alike;
}

/* The first node of `a` that `b` has not; NULL: they differ in numbers alone. */
static const struct node *first_difference(const struct flat *a, const struct flat *b) {
  for (int i = 0; i < a->nodes.count; i++)
    if (i >= b->nodes.count || !is_node_alike(&a->nodes.items[i], &b->nodes.items[i])) return a->nodes.items[i].node;
  return NULL;
}

/* Whether two graphs without a first difference are the same: one may go on after the other, or give other results. */
static bool ends_alike(const struct flat *a, const struct flat *b) {
  bool alike = a->nodes.count == b->nodes.count && a->n_results == b->n_results;
  for (int i = 0; alike && i < a->n_results; i++) alike = a->results[i] == b->results[i];
  return alike;
}

bool onnx_is_alike(struct arena *arena, const struct graph *a, const struct graph *b) {
  const struct flat *first = flat_of(arena, a), *second = flat_of(arena, b);
  return first_difference(first, second) == NULL && ends_alike(first, second);
}

bool onnx_has_window(struct arena *arena, const struct graph *graph, int64_t window) {
  const struct flat *flat = flat_of(arena, graph);
  for (int i = 0; i < flat->nodes.count; i++) {
    const struct node *node = flat->nodes.items[i].node;
    for (int k = 0; k < node->n_attributes; k++)
      if (strcmp(node->attributes[k].name, "window") == 0 && node->attributes[k].integer == window) return true;
  }
  return false;
}

/* Whether the graphs differ in numbers alone, and none in its parameters. */
static bool check_sizes(struct onnx *onnx) {
  const struct flat *first = onnx->flats[0];
  for (int i = 1; i < ONNX_SIZES; i++) {
    const struct flat *other = onnx->flats[i];
    const struct node *different = first_difference(first, other);
    if (different != NULL) return fail_at(onnx, different, "what is computed");
    if (!ends_alike(first, other))
      return fail_at(onnx, first->nodes.items[first->nodes.count - 1].node, "what is computed after this");
    for (int k = 0; k < first->parameters.count; k++) {
      const struct flat_value *a = &first->values.items[first->parameters.items[k]];
      const struct flat_value *b = &other->values.items[first->parameters.items[k]];
      if (!shape_equal(a->value->shape, b->value->shape))
        return fail_at(onnx, first->nodes.items[0].node, arena_printf(onnx->arena, "the shape of %s", a->parameter));
    }
  }
  return true;
}

/* ---- Inputs and outputs ---- */

static struct onnx_extent value_extent(const struct onnx *onnx, int value, int axis) {
  int64_t numbers[ONNX_SIZES];
  struct onnx_extent extent = {0};
  for (int i = 0; i < ONNX_SIZES; i++) numbers[i] = onnx->flats[i]->values.items[value].value->shape.dim[axis];
  if (!onnx_fit(onnx, numbers, &extent)) extent.both = -1;
  return extent;
}

static bool is_batch(struct onnx_extent e) {
  return e.batch == 1 && e.base == 0 && e.sequence == 0 && e.both == 0;
}

static bool is_sequence(struct onnx_extent e) {
  return e.sequence == 1 && e.base == 0 && e.batch == 0 && e.both == 0;
}

/* A ValueInfoProto. */
static void add_value(struct onnx *onnx, struct text *graph, int field, const char *name, enum onnx_type type,
                      const struct onnx_extent *extents, int rank) {
  struct arena *arena = onnx->arena;
  struct text shape = text_in(arena), tensor = text_in(arena), kind = text_in(arena), value = text_in(arena);
  for (int i = 0; i < rank; i++) {
    struct text dim = text_in(arena);
    if (onnx_is_fixed(extents[i])) proto_int(&dim, DIM_VALUE, extents[i].base);
    if (is_batch(extents[i]) || is_sequence(extents[i]))
      proto_text(&dim, DIM_NAME, is_batch(extents[i]) ? "batch" : "sequence");
    proto_message(&shape, SHAPE_DIM, &dim);
  }
  proto_int(&tensor, TENSOR_ELEMENT, type);
  proto_message(&tensor, TENSOR_SHAPE, &shape);
  proto_message(&kind, TYPE_TENSOR, &tensor);
  proto_text(&value, VALUE_NAME, name);
  proto_message(&value, VALUE_TYPE, &kind);
  proto_message(graph, field, &value);
}

static void add_input(struct onnx *onnx, struct text *graph, int index, const struct onnx_input *input) {
  const char *name = input->name;
  const int number = onnx->flats[0]->inputs[index];
  const struct value *value = onnx->flats[0]->values.items[number].value;
  const bool whole = input->along || !dtype_is_float(value->dtype);
  struct onnx_extent extents[MAX_RANK], own[MAX_RANK];
  const struct shape sample = input->sample;
  for (int i = 0; i < value->shape.rank; i++) extents[i] = own[i] = value_extent(onnx, number, i);
  for (int i = 0; i < sample.rank; i++) own[i + 1] = onnx_fixed(sample.dim[i]);
  if (onnx->sized == NULL && (input->along || sample.rank > 0)) onnx->sized = name;
  add_value(onnx, graph, GRAPH_INPUT, name, whole ? ONNX_INT64 : ONNX_FLOAT, own,
            sample.rank > 0 ? sample.rank + 1 : value->shape.rank);
  onnx->names[number] = whole             ? onnx_cast(onnx, name, value->dtype)
                        : sample.rank > 0 ? onnx_reshape(onnx, name, extents, value->shape.rank)
                                          : name;
}

/* The result, or its parts along axis 1. */
static void add_outputs(struct onnx *onnx, struct text *graph, const char *const *names, int n_names) {
  const int number = onnx->flats[0]->results[0];
  const struct value *value = onnx->flats[0]->values.items[number].value;
  struct onnx_extent extents[MAX_RANK];
  int rank = 0;
  for (int i = 0; i < value->shape.rank; i++)
    if (n_names == 1 || i != 1) extents[rank++] = value_extent(onnx, number, i);
  for (int i = 0; i < n_names; i++) {
    const char *part = onnx->names[number];
    if (n_names > 1) {
      const struct attribute axis = attribute_int("axis", 1);
      part = onnx_op(onnx, "Gather", (const char *[]){part, onnx_whole(onnx, i)}, 2, &axis, 1);
    }
    struct text node = text_in(onnx->arena);
    proto_text(&node, NODE_INPUT, part);
    proto_text(&node, NODE_OUTPUT, names[i]);
    proto_text(&node, NODE_NAME, names[i]);
    proto_text(&node, NODE_OPERATOR, "Identity");
    proto_message(&onnx->nodes, GRAPH_NODE, &node);
    add_value(onnx, graph, GRAPH_OUTPUT, names[i], onnx_type_of(value->dtype), extents, rank);
  }
}

/* ---- Nodes ---- */

static void add_node(struct onnx *onnx) {
  const struct node *node = onnx_node_at(onnx, 0);
  const struct op_onnx *rule = &node->kind->onnx;
  const char **inputs = arena_alloc(onnx->arena, ((size_t)node->n_inputs + 1) * sizeof *inputs);
  for (int i = 0; i < node->n_inputs; i++)
    if (onnx->names[onnx->flats[0]->nodes.items[onnx->node].inputs[i]] == NULL)
      onnx_fail(onnx, "input %d is a result that only training needs", i);
  if (onnx->failed) return;
  onnx->read = 0;
  for (int i = 0; i < node->n_inputs && rule->operator!= NULL; i++) inputs[i] = onnx_input(onnx, i);
  if (rule->operator!= NULL)
    onnx_result(onnx, 0, onnx_op(onnx, rule->operator, inputs, node->n_inputs, NULL, 0));
  else if (rule->write != NULL)
    rule->write(onnx);
  else
    onnx_fail(onnx, "it has no rule for that (docs/operations.md)");
  onnx_check_read(onnx);
}

static void name_weights(struct onnx *onnx) {
  const struct flat *flat = onnx->flats[0];
  for (int i = 0; i < flat->parameters.count; i++) {
    const int number = flat->parameters.items[i];
    onnx->names[number] = flat->values.items[number].parameter;
  }
}

/* Those that a rule has taken: a batch norm, for example, needs no count of its batches. */
static void add_weights(struct onnx *onnx, struct onnx_graph *made) {
  const struct flat *flat = onnx->flats[0];
  for (int i = 0; i < flat->n_results; i++) onnx->taken[flat->results[i]] = true;
  for (int i = 0; i < flat->parameters.count; i++) {
    const int number = flat->parameters.items[i];
    const struct flat_value *value = &flat->values.items[number];
    const struct onnx_weight weight = {value->parameter, value->value->shape};
    if (onnx->taken[number]) ARENA_PUSH(onnx->arena, made->weights, weight);
  }
}

static void make_graph(struct onnx *onnx, const struct onnx_input *inputs, const char *const *outputs, int n_outputs,
                       struct onnx_graph *made) {
  const struct flat *flat = onnx->flats[0];
  made->fields = text_in(onnx->arena);
  proto_text(&made->fields, GRAPH_NAME, "model");
  for (int i = 0; i < flat->n_inputs; i++) add_input(onnx, &made->fields, i, &inputs[i]);
  name_weights(onnx);
  for (int i = 0; i < flat->nodes.count && !onnx->failed; i++) {
    onnx->node = i;
    if (flat->nodes.items[i].used) add_node(onnx);
  }
  if (onnx->failed) return;
  add_weights(onnx, made);
  add_outputs(onnx, &made->fields, outputs, n_outputs);
  text_add(&made->fields, onnx->nodes.bytes, onnx->nodes.length);
  text_add(&made->fields, onnx->constants.bytes, onnx->constants.length);
}

bool onnx_make(struct arena *arena, const struct onnx_sizes *sizes, const struct graph *const graphs[ONNX_SIZES],
               const struct onnx_input *inputs, const char *const *outputs, int n_outputs, struct onnx_graph *made,
               struct diagnostics *diags) {
  struct onnx onnx = {.arena = arena, .diags = diags, .sizes = sizes};
  *made = (struct onnx_graph){0};
  onnx.nodes = onnx.constants = text_in(arena);
  for (int i = 0; i < ONNX_SIZES; i++) {
    onnx.flats[i] = i > 0 && graphs[i] == graphs[0] ? onnx.flats[0] : flat_of(arena, graphs[i]);
  }
  if (!check_sizes(&onnx)) return false;
  onnx.names = arena_alloc(arena, ((size_t)onnx.flats[0]->values.count + 1) * sizeof *onnx.names);
  onnx.taken = arena_alloc(arena, ((size_t)onnx.flats[0]->values.count + 1) * sizeof *onnx.taken);
  make_graph(&onnx, inputs, outputs, n_outputs, made);
  return !onnx.failed;
}
