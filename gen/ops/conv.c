/* Layers and functions that convolve, written with convolution, convolution_data, reshape and add: images
 * [N][C][H][W], and signals [N][C][L], which are images of height 1. Weights are [out][in / groups][k][k], transposed
 * ones [in][out / groups][k][k], as PyTorch's; without an initializer of the scope, weight and bias start uniform
 * within 1 / sqrt(what one element of the result adds up), as there. */
#include <math.h>

#include "gen/ops/support/support.h"

/* Pairs are of height and width. */
struct how {
  int rank; /* 1: signals, 2: images */
  bool transposed;
  int64_t stride[2], padding[2], dilation[2], groups, output_padding;
};

static struct how plainly(int rank, bool transposed) {
  return (struct how){rank, transposed, {1, 1}, {0, 0}, {1, 1}, 1, 0};
}

/* The same along height and width; along width alone of a signal. */
static void set(const struct how *how, int64_t *pair, int64_t value) {
  if (how->rank == 2) pair[0] = value;
  pair[1] = value;
}

static bool check(struct builder *builder, const char *function, const struct value *x, const struct how *how) {
  const char *wanted = how->rank == 2 ? "[batch][channels][height][width]" : "[batch][channels][length]";
  if (x->shape.rank != how->rank + 2)
    return builder_error(builder, "%s: x %s must be %s", function, shape_text(builder_arena(builder), x->shape),
                         wanted),
           false;
  bool good = how->groups >= 1;
  for (int i = 0; i < 2; i++) good &= how->stride[i] >= 1 && how->padding[i] >= 0 && how->dilation[i] >= 1;
  good &= how->output_padding >= 0 && (how->output_padding == 0 || how->output_padding < how->stride[1]);
  if (!good)
    builder_error(builder,
                  "%s: stride, dilation and groups must be at least 1, padding at least 0, and output padding below "
                  "the stride",
                  function);
  return good;
}

/* A signal as an image of height 1. */
static struct value *as_image(struct builder *builder, struct value *x) {
  if (x->shape.rank != 3) return x;
  return op_reshape(builder, x, shape_of(4, x->shape.dim[0], x->shape.dim[1], (int64_t)1, x->shape.dim[2]));
}

static struct value *convolve(struct builder *builder, const char *function, struct value *x, struct value *weight,
                              const struct how *how) {
  if (x == NULL || weight == NULL || !check(builder, function, x, how)) return NULL;
  if (weight->shape.rank != how->rank + 2) {
    builder_error(builder, "%s: the weight %s must have as many dimensions as x %s", function,
                  shape_text(builder_arena(builder), weight->shape), shape_text(builder_arena(builder), x->shape));
    return NULL;
  }
  struct value *inputs[] = {as_image(builder, x), as_image(builder, weight)};
  if (inputs[0] == NULL || inputs[1] == NULL) return NULL;
  struct shape extents = shape_of(2, (int64_t)1, (int64_t)1);
  for (int i = 2 - how->rank; i < 2; i++)
    extents.dim[i] = (inputs[0]->shape.dim[2 + i] - 1) * how->stride[i] - 2 * how->padding[i] +
                     how->dilation[i] * (inputs[1]->shape.dim[2 + i] - 1) + how->output_padding + 1;
  if (how->transposed && (extents.dim[0] < 1 || extents.dim[1] < 1)) {
    builder_error(builder, "%s: the padding leaves nothing of x %s and the weight %s", function,
                  shape_text(builder_arena(builder), x->shape), shape_text(builder_arena(builder), weight->shape));
    return NULL;
  }
  struct attribute attributes[] = {attribute_ints("stride", shape_of(2, how->stride[0], how->stride[1])),
                                   attribute_ints("padding", shape_of(2, how->padding[0], how->padding[1])),
                                   attribute_ints("dilation", shape_of(2, how->dilation[0], how->dilation[1])),
                                   attribute_int("groups", how->groups), attribute_ints("extents", extents)};
  struct value *y = builder_op(builder, how->transposed ? "convolution_data" : "convolution", inputs, 2, attributes,
                               how->transposed ? 5 : 4);
  if (y == NULL || how->rank == 2) return y;
  return op_reshape(builder, y, shape_of(3, y->shape.dim[0], y->shape.dim[1], y->shape.dim[3]));
}

/* ---- Layers ---- */

static struct value *add_bias(struct builder *builder, const struct scope *scope, struct value *y, int rank,
                              double bound) {
  int64_t out = y->shape.dim[1];
  struct initializer start = {INIT_UNIFORM, -bound, bound};
  struct value *bias = scope->init.kind != INIT_DEFAULT
                           ? op_fixed_parameter(builder, scope, "bias", shape_of(1, out), INIT_ZEROS)
                           : builder_parameter(builder, scope, "bias", shape_of(1, out), start);
  struct shape column = rank == 2 ? shape_of(3, out, (int64_t)1, (int64_t)1) : shape_of(2, out, (int64_t)1);
  return bias == NULL ? NULL : op_add(builder, y, op_reshape(builder, bias, column));
}

/* s, x, out, kernel, stride, padding and, where grouped, dilation, groups. */
static struct value *layer(struct builder *builder, const char *function, const struct argument *arguments, int count,
                           int rank, bool transposed, bool bias) {
  const struct scope *scope = arguments[0].scope;
  struct value *x = op_tensor(arguments, 1);
  struct how how = plainly(rank, transposed);
  int64_t out = arguments[2].integer, kernel = arguments[3].integer;
  set(&how, how.stride, arguments[4].integer);
  set(&how, how.padding, arguments[5].integer);
  if (count > 6) set(&how, how.dilation, arguments[6].integer);
  if (count > 7) how.groups = arguments[7].integer;
  if (x == NULL || !check(builder, function, x, &how)) return NULL;
  int64_t in = x->shape.dim[1];
  if (out < 1 || kernel < 1 || in % how.groups != 0 || out % how.groups != 0) {
    builder_error(builder, "%s: %lld groups must divide the %lld channels of x and the %lld of the result; kernel %lld",
                  function, (long long)how.groups, (long long)in, (long long)out, (long long)kernel);
    return NULL;
  }
  struct shape shape = shape_of(2, transposed ? in : out, (transposed ? out : in) / how.groups);
  for (int i = 0; i < rank; i++) shape.dim[shape.rank++] = kernel;
  double bound = 1 / sqrt((double)shape_product(shape, 1, shape.rank));
  struct value *weight =
      builder_parameter(builder, scope, "weight", shape, (struct initializer){INIT_UNIFORM, -bound, bound});
  struct value *y = convolve(builder, function, x, weight, &how);
  return bias && y != NULL ? add_bias(builder, scope, y, rank, bound) : y;
}

#define LAYER(NAME, RANK, TRANSPOSED, BIAS)                                                                            \
  static struct value *build_##NAME(struct builder *builder, const struct argument *arguments, int count) {            \
    return layer(builder, #NAME, arguments, count, RANK, TRANSPOSED, BIAS);                                            \
  }

LAYER(conv1d, 1, false, true)
LAYER(conv1d_no_bias, 1, false, false)
LAYER(conv1d_grouped, 1, false, true)
LAYER(conv1d_grouped_no_bias, 1, false, false)
LAYER(conv2d, 2, false, true)
LAYER(conv2d_no_bias, 2, false, false)
LAYER(conv2d_grouped, 2, false, true)
LAYER(conv2d_grouped_no_bias, 2, false, false)
LAYER(conv_transpose1d, 1, true, true)
LAYER(conv_transpose2d, 2, true, true)

/* ---- Functions of a weight that is given ---- */

/* x, weight, stride, padding, (output padding,) dilation, groups */
static struct value *function(struct builder *builder, const char *name, const struct argument *arguments, int rank,
                              bool transposed) {
  struct how how = plainly(rank, transposed);
  set(&how, how.stride, arguments[2].integer);
  set(&how, how.padding, arguments[3].integer);
  how.output_padding = transposed ? arguments[4].integer : 0;
  set(&how, how.dilation, arguments[4 + transposed].integer);
  how.groups = arguments[5 + transposed].integer;
  return convolve(builder, name, op_tensor(arguments, 0), op_tensor(arguments, 1), &how);
}

#define FUNCTION(NAME, RANK, TRANSPOSED)                                                                               \
  static struct value *build_##NAME(struct builder *builder, const struct argument *arguments, int count) {            \
    (void)count;                                                                                                       \
    return function(builder, #NAME, arguments, RANK, TRANSPOSED);                                                      \
  }

FUNCTION(convolve1d, 1, false)
FUNCTION(convolve2d, 2, false)
FUNCTION(convolve_transposed1d, 1, true)
FUNCTION(convolve_transposed2d, 2, true)

/* convolve2d_pairs(x, weight, stride, padding, dilation, groups), all but the last of height and width */
static struct value *build_pairs(struct builder *builder, const struct argument *arguments, int count) {
  (void)count;
  struct how how = plainly(2, false);
  for (int i = 0; i < 2; i++) {
    how.stride[i] = arguments[2 + i].integer;
    how.padding[i] = arguments[4 + i].integer;
    how.dilation[i] = arguments[6 + i].integer;
  }
  how.groups = arguments[8].integer;
  return convolve(builder, "convolve2d_pairs", op_tensor(arguments, 0), op_tensor(arguments, 1), &how);
}

const struct op_file op_file_conv = {
    .name = "conv",
    .functions =
        (const struct op_function[]){
            {"conv1d", .build = build_conv1d},
            {"conv1d_no_bias", .build = build_conv1d_no_bias},
            {"conv1d_grouped", .build = build_conv1d_grouped},
            {"conv1d_grouped_no_bias", .build = build_conv1d_grouped_no_bias},
            {"conv2d", .build = build_conv2d},
            {"conv2d_no_bias", .build = build_conv2d_no_bias},
            {"conv2d_grouped", .build = build_conv2d_grouped},
            {"conv2d_grouped_no_bias", .build = build_conv2d_grouped_no_bias},
            {"conv_transpose1d", .build = build_conv_transpose1d},
            {"conv_transpose2d", .build = build_conv_transpose2d},
            {"convolve1d", .build = build_convolve1d},
            {"convolve2d", .build = build_convolve2d},
            {"convolve2d_pairs", .build = build_pairs},
            {"convolve_transposed1d", .build = build_convolve_transposed1d},
            {"convolve_transposed2d", .build = build_convolve_transposed2d},
            {0},
        },
};
