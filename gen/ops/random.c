/* Numbers drawn again in each run of the model, from words w of the stream that dropout draws from (Philox, `site` says
 * which words), of which the upper 24 bits count: uniform in [0, 1): w / 2^24; integers below a bound: bound w / 2^32;
 * normal of mean 0 and deviation 1, by pairs v, w (Box, Muller, Annals of Mathematical Statistics 29, 1958):
 * sqrt(-2 log((v + 1) / 2^24)) times the cosine and the sine of 2 pi w / 2^24. Nothing has a gradient. */
#include <math.h>

#include "gen/ops/support/support.h"
#include "gen/stablehlo/stablehlo.h"

static int infer(struct arena *arena, const struct node *node, struct shape *shapes, enum dtype *dtypes,
                 const char **error) {
  (void)arena;
  (void)error;
  return op_result(shapes, dtypes, node_ints(node, "dims"), DTYPE_FLOAT32);
}

static int infer_int(struct arena *arena, const struct node *node, struct shape *shapes, enum dtype *dtypes,
                     const char **error) {
  (void)arena;
  (void)error;
  return op_result(shapes, dtypes, node_ints(node, "dims"), DTYPE_INT32);
}

static uint32_t word(const struct node *node, int64_t i) {
  return op_random_word((uint64_t)i, (uint32_t)node_int(node, "site"));
}

static void reference_uniform(const struct node *node, const double *const *inputs, double *const *outputs) {
  (void)inputs;
  for (int64_t i = 0; i < shape_count(node->outputs[0]->shape); i++) outputs[0][i] = (word(node, i) >> 8) * 0x1p-24;
}

static void reference_int(const struct node *node, const double *const *inputs, double *const *outputs) {
  (void)inputs;
  uint64_t bound = (uint64_t)node_int(node, "bound");
  for (int64_t i = 0; i < shape_count(node->outputs[0]->shape); i++)
    outputs[0][i] = (double)(word(node, i) * bound >> 32);
}

static void reference_normal(const struct node *node, const double *const *inputs, double *const *outputs) {
  (void)inputs;
  for (int64_t i = 0; i < shape_count(node->outputs[0]->shape); i++) {
    int64_t pair = i - i % 2;
    double far = sqrt(-2 * log(((word(node, pair) >> 8) + 1) * 0x1p-24));
    double angle = 6.283185307179586 * 0x1p-24 * (word(node, pair + 1) >> 8);
    outputs[0][i] = far * (i % 2 == 0 ? cos(angle) : sin(angle));
  }
}

static void range(const struct node *node, int64_t none, int64_t *low, int64_t *high) {
  (void)none;
  *low = 0;
  *high = node_int(node, "bound") - 1;
}

/* The upper 24 bits of words, as float32. */
static struct hlo lower_upper(struct stablehlo *hlo, struct hlo words, double added) {
  const struct hlo upper = hlo_binary(hlo, "shift_right_logical", words, hlo_number(8));
  return hlo_convert(hlo, added != 0 ? hlo_add(hlo, upper, hlo_number(added)) : upper, HLO_F32);
}

static struct hlo lower_words(struct stablehlo *hlo, int64_t count) {
  return hlo_random_words(hlo, count, node_int(hlo_node(hlo), "site"));
}

static void lower_uniform(struct stablehlo *hlo) {
  const struct hlo words = lower_words(hlo, shape_count(hlo_node(hlo)->outputs[0]->shape));
  hlo_result(hlo, 0, hlo_mul(hlo, lower_upper(hlo, words, 0), hlo_number(0x1p-24)));
}

static void lower_int(struct stablehlo *hlo) {
  const struct hlo words = lower_words(hlo, shape_count(hlo_node(hlo)->outputs[0]->shape));
  const struct hlo product = hlo_mul(hlo, words, hlo_number((double)node_int(hlo_node(hlo), "bound")));
  hlo_result(hlo, 0, hlo_binary(hlo, "shift_right_logical", product, hlo_number(32)));
}

static void lower_normal(struct stablehlo *hlo) {
  const int64_t count = shape_count(hlo_node(hlo)->outputs[0]->shape), pairs = (count + 1) / 2;
  const struct hlo words = hlo_reshape(hlo, lower_words(hlo, 2 * pairs), shape_of(2, pairs, INT64_C(2)));
  const struct hlo first = lower_upper(hlo, hlo_slice(hlo, words, 1, 0, 1), 1);
  const struct hlo second = lower_upper(hlo, hlo_slice(hlo, words, 1, 1, 1), 0);
  const struct hlo log = hlo_unary(hlo, "log", hlo_mul(hlo, first, hlo_number(0x1p-24)));
  const struct hlo far = hlo_unary(hlo, "sqrt", hlo_mul(hlo, log, hlo_number(-2)));
  const struct hlo angle = hlo_mul(hlo, second, hlo_number(6.283185307179586 * 0x1p-24));
  const struct hlo parts[] = {hlo_mul(hlo, far, hlo_unary(hlo, "cosine", angle)),
                              hlo_mul(hlo, far, hlo_unary(hlo, "sine", angle))};
  const struct hlo all = hlo_reshape(hlo, hlo_concat(hlo, parts, 2, 1), shape_of(1, 2 * pairs));
  hlo_result(hlo, 0, hlo_slice(hlo, all, 0, 0, count));
}

static const struct op_kind kind_uniform = {
    .name = "random_uniform",
    .lower.write = lower_uniform,
    .class = OP_KERNEL,
    .template_name = "random",
    .output_names = {"y"},
    .infer = infer,
    .cost.flops = op_flops_none,
    .reference.evaluate = reference_uniform,
    .kernel.random = true,
    .types.wide = true,
};

static const struct op_kind kind_int = {
    .name = "random_int",
    .lower.write = lower_int,
    .class = OP_KERNEL,
    .template_name = "random",
    .output_names = {"y"},
    .infer = infer_int,
    .cost.flops = op_flops_none,
    .index.range = range,
    .reference.evaluate = reference_int,
    .kernel.random = true,
    .types.wide = true,
};

static const struct op_kind kind_normal = {
    .name = "random_normal",
    .lower.write = lower_normal,
    .class = OP_KERNEL,
    .output_names = {"y"},
    .infer = infer,
    .cost.flops = op_flops_none,
    .reference.evaluate = reference_normal,
    .kernel.random = true,
    .types.wide = true,
};

/* A node over the extents from argument `first` on, which argument first - 1 counts. */
static struct value *draw(struct builder *builder, const struct op_kind *kind, const struct argument *arguments,
                          int count, int first, int64_t bound) {
  struct shape shape;
  if (!op_extents(builder, kind->name, arguments, count, first, false, &shape)) return NULL;
  struct attribute attributes[] = {attribute_ints("dims", shape), attribute_int("site", builder_random_count(builder)),
                                   attribute_int("bound", bound)};
  return builder_op(builder, kind->name, NULL, 0, attributes, bound > 0 ? 3 : 2);
}

/* random_uniform_of(rank, extents…) */
static struct value *build_uniform(struct builder *builder, const struct argument *arguments, int count) {
  return draw(builder, &kind_uniform, arguments, count, 1, 0);
}

/* random_normal_of(rank, extents…) */
static struct value *build_normal(struct builder *builder, const struct argument *arguments, int count) {
  return draw(builder, &kind_normal, arguments, count, 1, 0);
}

/* random_int_of(bound, rank, extents…) */
static struct value *build_int(struct builder *builder, const struct argument *arguments, int count) {
  if (arguments[0].integer >= 1 && arguments[0].integer <= INT32_MAX)
    return draw(builder, &kind_int, arguments, count, 2, arguments[0].integer);
  builder_error(builder, "random_int: the bound must be from 1 to 2147483647, not %lld",
                (long long)arguments[0].integer);
  return NULL;
}

const struct op_file op_file_random = {
    .name = "random",
    .kinds = (const struct op_kind *const[]){&kind_uniform, &kind_int, &kind_normal, NULL},
    .functions = (const struct op_function[]){{"random_uniform_of", .build = build_uniform},
                                              {"random_normal_of", .build = build_normal},
                                              {"random_int_of", .build = build_int},
                                              {0}},
};
