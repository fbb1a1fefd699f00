/* y = numbers that are known when the model is read, float32 or, where `whole`, int32. */
#include "gen/onnx/onnx.h"
#include "gen/ops/support/support.h"
#include "gen/stablehlo/stablehlo.h"

static int infer(struct arena *arena, const struct node *node, struct shape *shapes, enum dtype *dtypes,
                 const char **error) {
  (void)arena;
  (void)error;
  return op_result(shapes, dtypes, shape_of(1, node_int(node, "count")),
                   node_int(node, "whole") ? DTYPE_INT32 : DTYPE_FLOAT32);
}

static void reference(const struct node *node, const double *const *inputs, double *const *outputs) {
  (void)inputs;
  for (int64_t i = 0; i < node_int(node, "count"); i++) outputs[0][i] = node_reals(node, "numbers")[i];
}

static void range(const struct node *node, int64_t none, int64_t *low, int64_t *high) {
  const double *numbers = node_reals(node, "numbers");
  *low = *high = 0;
  for (int64_t i = 0; i < node_int(node, "count"); i++) {
    int64_t number = (int64_t)numbers[i];
    if (number == none) continue;
    if (number < *low) *low = number;
    if (number > *high) *high = number;
  }
}

static void write_onnx(struct onnx *onnx) {
  const enum dtype dtype = onnx_result_dtype(onnx);
  onnx_ignore(onnx, "whole"); /* the result's type */
  onnx_result(onnx, 0, onnx_list(onnx, dtype, onnx_reals(onnx, "numbers"), onnx_int(onnx, "count")));
}

static void lower(struct stablehlo *hlo) {
  const struct value *y = hlo_node(hlo)->outputs[0];
  hlo_result(hlo, 0, hlo_table(hlo, node_reals(hlo_node(hlo), "numbers"), y->shape, (enum hlo_type)y->dtype));
}

static const struct op_kind kind = {
    .name = "table",
    .lower.write = lower,
    .onnx.write = write_onnx,
    .class = OP_KERNEL,
    .output_names = {"y"},
    .infer = infer,
    .cost.flops = op_flops_none,
    .index.range = range,
    .reference.evaluate = reference,
};

/* table_of(count, array), whose elements follow one by one. */
static struct value *table(struct builder *builder, const char *function, const struct argument *arguments, int given,
                           bool whole) {
  int64_t count = arguments[0].integer;
  if (count < 1 || count > given - 1) {
    builder_error(builder, "%s: %lld numbers of an array that has %d", function, (long long)count, given - 1);
    return NULL;
  }
  double *numbers = arena_alloc(builder_arena(builder), (size_t)count * sizeof *numbers);
  for (int64_t i = 0; i < count; i++) numbers[i] = arguments[1 + i].real;
  struct attribute attributes[] = {attribute_int("count", count), attribute_int("whole", whole),
                                   attribute_reals("numbers", numbers, count)};
  return builder_op(builder, "table", NULL, 0, attributes, 3);
}

static struct value *build(struct builder *builder, const struct argument *arguments, int count) {
  return table(builder, "table_of", arguments, count, false);
}

static struct value *build_whole(struct builder *builder, const struct argument *arguments, int count) {
  return table(builder, "int_table_of", arguments, count, true);
}

const struct op_file op_file_table = {
    .name = "table",
    .kinds = (const struct op_kind *const[]){&kind, NULL},
    .functions =
        (const struct op_function[]){{"table_of", .build = build}, {"int_table_of", .build = build_whole}, {0}},
};
