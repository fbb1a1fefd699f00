/* Operators and constants. */
#include <string.h>

#include "gen/base/hash.h"
#include "gen/onnx/state.h"

/* ---- What is there ---- */

static int bucket_of(const struct text *key) {
  return (int)(hash_bytes(key->bytes, key->length) % ONNX_BUCKETS);
}

const struct onnx_item *onnx_find(const struct onnx *onnx, const struct text *key) {
  for (int i = onnx->buckets[bucket_of(key)]; i > 0; i = onnx->made.items[i - 1].next) {
    const struct onnx_item *item = &onnx->made.items[i - 1];
    if (item->length == key->length && memcmp(item->key, key->bytes, key->length) == 0) return item;
  }
  return NULL;
}

const char *const *onnx_add(struct onnx *onnx, const struct text *key, const char **outputs) {
  int *bucket = &onnx->buckets[bucket_of(key)];
  const struct onnx_item item = {key->bytes, key->length, outputs, *bucket};
  ARENA_PUSH(onnx->arena, onnx->made, item);
  *bucket = onnx->made.count;
  return outputs;
}

void onnx_forget(struct onnx *onnx, int made) {
  for (int i = 0; i < ONNX_BUCKETS; i++)
    while (onnx->buckets[i] > made) onnx->buckets[i] = onnx->made.items[onnx->buckets[i] - 1].next;
}

/* ---- Operators ---- */

void onnx_add_attribute(struct text *node, struct arena *arena, const struct attribute *attribute) {
  struct text field = text_in(arena);
  proto_text(&field, ATTRIBUTE_NAME, attribute->name);
  if (attribute->kind == ATTRIBUTE_INT) {
    proto_int(&field, ATTRIBUTE_I, attribute->integer);
    proto_int(&field, ATTRIBUTE_TYPE, TYPE_INT);
  } else if (attribute->kind == ATTRIBUTE_REAL) {
    proto_float(&field, ATTRIBUTE_F, (float)attribute->real);
    proto_int(&field, ATTRIBUTE_TYPE, TYPE_FLOAT);
  } else {
    for (int i = 0; i < attribute->ints.rank; i++) proto_int(&field, ATTRIBUTE_FIELD_INTS, attribute->ints.dim[i]);
    proto_int(&field, ATTRIBUTE_TYPE, TYPE_INTS);
  }
  proto_message(node, NODE_ATTRIBUTE, &field);
}

const char *const *onnx_node_of(struct onnx *onnx, const char *operator, const char * const * inputs, int n_inputs,
                                const struct text *attributes, int n_outputs) {
  struct text node = text_in(onnx->arena);
  for (int i = 0; i < n_inputs; i++) proto_text(&node, NODE_INPUT, inputs[i]);
  proto_text(&node, NODE_OPERATOR, operator);
  text_add(&node, attributes->bytes, attributes->length);
  const struct onnx_item *known = onnx_find(onnx, &node);
  if (known != NULL) return known->outputs;
  struct text whole = text_in(onnx->arena);
  const char **outputs = arena_alloc(onnx->arena, (size_t)n_outputs * sizeof *outputs);
  const char *name = arena_printf(onnx->arena, "%s_%d", operator, onnx->made.count);
  text_add(&whole, node.bytes, node.length);
  proto_text(&whole, NODE_NAME, name);
  for (int i = 0; i < n_outputs; i++) {
    outputs[i] = i == 0 ? name : arena_printf(onnx->arena, "%s_%d", name, i);
    proto_text(&whole, NODE_OUTPUT, outputs[i]);
  }
  proto_message(&onnx->nodes, GRAPH_NODE, &whole);
  return onnx_add(onnx, &node, outputs);
}

const char *const *onnx_node(struct onnx *onnx, const char *operator, const char * const * inputs, int n_inputs,
                             const struct attribute *attributes, int n_attributes, int n_outputs) {
  struct text fields = text_in(onnx->arena);
  for (int i = 0; i < n_attributes; i++) onnx_add_attribute(&fields, onnx->arena, &attributes[i]);
  return onnx_node_of(onnx, operator, inputs, n_inputs, &fields, n_outputs);
}

const char *onnx_add_rows(struct onnx *onnx, const char *x, const char *index, const char *rows) {
  struct text reduction = text_in(onnx->arena), fields = text_in(onnx->arena);
  proto_text(&reduction, ATTRIBUTE_NAME, "reduction");
  proto_text(&reduction, ATTRIBUTE_S, "add");
  proto_int(&reduction, ATTRIBUTE_TYPE, TYPE_STRING);
  proto_message(&fields, NODE_ATTRIBUTE, &reduction);
  return onnx_node_of(onnx, "ScatterND", (const char *[]){x, index, rows}, 3, &fields, 1)[0];
}

const char *onnx_op(struct onnx *onnx, const char *operator, const char * const * inputs, int n_inputs,
                    const struct attribute *attributes, int n_attributes) {
  return onnx_node(onnx, operator, inputs, n_inputs, attributes, n_attributes, 1)[0];
}

const char *onnx_unary(struct onnx *onnx, const char *operator, const char * x) {
  return onnx_op(onnx, operator, & x, 1, NULL, 0);
}

const char *onnx_binary(struct onnx *onnx, const char *operator, const char * a, const char *b) {
  return onnx_op(onnx, operator,(const char *[]){a, b}, 2, NULL, 0);
}

const char *onnx_ternary(struct onnx *onnx, const char *operator, const char * a, const char *b, const char *c) {
  return onnx_op(onnx, operator,(const char *[]){a, b, c}, 3, NULL, 0);
}

const char *onnx_with(struct onnx *onnx, const char *operator, const char * x, const char *attribute, int64_t value) {
  const struct attribute number = attribute_int(attribute, value);
  return onnx_op(onnx, operator, & x, 1, &number, 1);
}

const char *onnx_cast(struct onnx *onnx, const char *x, enum dtype dtype) {
  return onnx_with(onnx, "Cast", x, "to", onnx_type_of(dtype));
}

const char *onnx_truth(struct onnx *onnx, const char *x) {
  return onnx_with(onnx, "Cast", x, "to", ONNX_BOOL);
}

const char *onnx_reshape(struct onnx *onnx, const char *x, const struct onnx_extent *extents, int count) {
  struct onnx_extent wanted[MAX_RANK];
  int free = 0;
  for (int i = 0; i < count; i++) {
    wanted[i] = extents[i];
    free += !onnx_is_fixed(extents[i]) || extents[i].base == -1;
  }
  for (int i = 0; i < count && free == 1; i++)
    if (!onnx_is_fixed(wanted[i])) wanted[i] = onnx_fixed(-1); /* what is left */
  return onnx_binary(onnx, "Reshape", x, onnx_shape(onnx, wanted, count));
}

const char *onnx_transpose(struct onnx *onnx, const char *x, struct shape order) {
  const struct attribute permutation = attribute_ints("perm", order);
  return onnx_op(onnx, "Transpose", &x, 1, &permutation, 1);
}

const char *onnx_exchange(struct onnx *onnx, const char *x, int rank, int a, int b) {
  struct shape order = {.rank = rank};
  for (int i = 0; i < rank; i++) order.dim[i] = i == a ? b : i == b ? a : i;
  return onnx_transpose(onnx, x, order);
}

const char *onnx_slice(struct onnx *onnx, const char *x, int axis, struct onnx_extent start, struct onnx_extent end) {
  const struct onnx_extent along = onnx_fixed(axis);
  const char *inputs[] = {x, onnx_shape(onnx, &start, 1), onnx_shape(onnx, &end, 1), onnx_shape(onnx, &along, 1)};
  return onnx_op(onnx, "Slice", inputs, 4, NULL, 0);
}

/* ---- Constants ---- */

enum onnx_type onnx_type_of(enum dtype dtype) {
  return dtype == DTYPE_INT32   ? ONNX_INT32
         : dtype == DTYPE_INT64 ? ONNX_INT64
         : dtype == DTYPE_UINT8 ? ONNX_UINT8
                                : ONNX_FLOAT;
}

const char *onnx_constant(struct onnx *onnx, enum onnx_type type, int rank, const void *bytes, size_t each,
                          int64_t count) {
  struct text tensor = text_in(onnx->arena);
  if (rank == 1) proto_int(&tensor, TENSOR_DIMS, count);
  proto_int(&tensor, TENSOR_TYPE, type);
  proto_bytes(&tensor, TENSOR_RAW, bytes, (size_t)count * each);
  const struct onnx_item *known = onnx_find(onnx, &tensor);
  if (known != NULL) return known->outputs[0];
  struct text whole = text_in(onnx->arena);
  const char **name = arena_alloc(onnx->arena, sizeof *name);
  name[0] = arena_printf(onnx->arena, "constant_%d", onnx->made.count);
  text_add(&whole, tensor.bytes, tensor.length);
  proto_text(&whole, TENSOR_NAME, name[0]);
  proto_message(&onnx->constants, GRAPH_INITIALIZER, &whole);
  return onnx_add(onnx, &tensor, name)[0];
}

const char *onnx_float(struct onnx *onnx, double value) {
  const float number = (float)value;
  return onnx_constant(onnx, ONNX_FLOAT, 0, &number, sizeof number, 1);
}

const char *onnx_whole(struct onnx *onnx, int64_t value) {
  return onnx_constant(onnx, ONNX_INT64, 0, &value, sizeof value, 1);
}

const char *onnx_list(struct onnx *onnx, enum dtype dtype, const double *values, int64_t count) {
  const size_t each = (size_t)dtype_size(dtype);
  uint8_t *bytes = arena_alloc(onnx->arena, (size_t)count * each);
  for (int64_t i = 0; i < count; i++) {
    const float real = (float)values[i];
    const int32_t small = dtype == DTYPE_INT32 ? (int32_t)values[i] : 0;
    const int64_t large = dtype == DTYPE_INT64 ? (int64_t)values[i] : 0;
    const void *from = dtype == DTYPE_INT32   ? (const void *)&small
                       : dtype == DTYPE_INT64 ? (const void *)&large
                                              : &real;
    memcpy(bytes + (size_t)i * each, from, each);
  }
  return onnx_constant(onnx, onnx_type_of(dtype), 1, bytes, each, count);
}

/* ---- Extents ---- */

/* A size as int64 [1]: dimension `axis` of an input that has it. */
static const char *size_of(struct onnx *onnx, int axis) {
  const struct attribute part[] = {attribute_int("start", axis), attribute_int("end", axis + 1)};
  return onnx_op(onnx, "Shape", &onnx->sized, 1, part, 2);
}

/* sum + factor * what */
static const char *with_term(struct onnx *onnx, const char *sum, int64_t factor, const char *what) {
  if (factor != 1) what = onnx_binary(onnx, "Mul", what, onnx_constant(onnx, ONNX_INT64, 1, &factor, 8, 1));
  return sum == NULL ? what : onnx_binary(onnx, "Add", sum, what);
}

/* As int64 [1]. */
static const char *extent_tensor(struct onnx *onnx, struct onnx_extent e) {
  const char *sum = NULL;
  if (e.batch != 0) sum = with_term(onnx, sum, e.batch, size_of(onnx, 0));
  if (e.sequence != 0) sum = with_term(onnx, sum, e.sequence, size_of(onnx, 1));
  if (e.both != 0) sum = with_term(onnx, sum, e.both, onnx_binary(onnx, "Mul", size_of(onnx, 0), size_of(onnx, 1)));
  if (e.base == 0 && sum != NULL) return sum;
  const char *base = onnx_constant(onnx, ONNX_INT64, 1, &e.base, sizeof e.base, 1);
  return sum == NULL ? base : onnx_binary(onnx, "Add", sum, base);
}

const char *onnx_shape(struct onnx *onnx, const struct onnx_extent *extents, int count) {
  const char *parts[MAX_RANK];
  int64_t numbers[MAX_RANK];
  bool fixed = true;
  for (int i = 0; i < count; i++) {
    fixed &= onnx_is_fixed(extents[i]);
    numbers[i] = extents[i].base;
  }
  if (fixed) return onnx_constant(onnx, ONNX_INT64, 1, numbers, sizeof *numbers, count);
  for (int i = 0; i < count; i++) parts[i] = extent_tensor(onnx, extents[i]);
  const struct attribute axis = attribute_int("axis", 0);
  return count == 1 ? parts[0] : onnx_op(onnx, "Concat", parts, count, &axis, 1);
}

const char *onnx_count(struct onnx *onnx, struct onnx_extent extent) {
  if (onnx_is_fixed(extent)) return onnx_whole(onnx, extent.base);
  return onnx_unary(onnx, "Squeeze", onnx_shape(onnx, &extent, 1));
}

const char *onnx_range(struct onnx *onnx, struct onnx_extent extent) {
  return onnx_ternary(onnx, "Range", onnx_whole(onnx, 0), onnx_count(onnx, extent), onnx_whole(onnx, 1));
}
