/* The mean of lse[r] - logits[r][targets[r]] over the rows whose target is not `ignore`, lse[r] = ln of the sum of
 * e^logits[r]; scale = 1 / the number of those rows. dlogits[r][v] = d_loss scale (e^(logits[r][v] - lse[r]) - [v is
 * the target]), 0 in ignored rows. Without a row that counts both are not a number, as in PyTorch.
 *
 * `smoothing` s takes that fraction of the target's weight and spreads it over all V classes (Szegedy et al.,
 * arXiv:1512.00567, section 7): the row's loss is lse - (1 - s) logits[target] - s avg(logits), and in the gradient the
 * target has 1 - s and every class s / V. `z` adds z lse^2 to a row's loss, which keeps lse near 0 (Chowdhery et al.,
 * arXiv:2204.02311, section 5): e^(...) is then times 1 + 2 z lse. */
#include <math.h>

#include "gen/ops/support/lowered.h"
#include "gen/ops/support/support.h"

/* Ignores nothing that is a class: PyTorch's default of torch.nn.functional.cross_entropy. */
enum { IGNORE_DEFAULT = -100 };

/* What both kinds have: the class that does not count, and what is added to the plain loss. */
enum { N_ATTRIBUTES = 3 };

static int infer(struct arena *arena, const struct node *node, struct shape *shapes, enum dtype *dtypes,
                 const char **error) {
  if (!op_check_float(arena, node, 0, error) || !op_check_rank(arena, node, 0, 1, error)) return 0;
  if (!op_check_dtype(arena, node, 1, DTYPE_INT32, error)) return 0;
  struct shape logits = node->inputs[0]->shape;
  const char *what = arena_printf(arena, "one for each row of %s", op_operand_text(arena, node, 0));
  if (!op_check_shape(arena, node, 1, op_leading(logits), what, error)) return 0;
  shapes[0] = shapes[2] = (struct shape){0};
  shapes[1] = shape_of(1, op_rows(logits));
  dtypes[0] = dtypes[1] = dtypes[2] = DTYPE_FLOAT32;
  return 3;
}

static double log_sum_exp(const double *x, int64_t columns) {
  double highest = x[0], sum = 0;
  for (int64_t c = 1; c < columns; c++) highest = fmax(highest, x[c]);
  for (int64_t c = 0; c < columns; c++) sum += exp(x[c] - highest);
  return highest + log(sum);
}

static double average(const double *x, int64_t columns) {
  double sum = 0;
  for (int64_t c = 0; c < columns; c++) sum += x[c];
  return sum / (double)columns;
}

static void reference(const struct node *node, const double *const *inputs, double *const *outputs) {
  int64_t columns = op_columns(node->inputs[0]->shape), rows = op_rows(node->inputs[0]->shape), counted = 0;
  double total = 0;
  for (int64_t r = 0; r < rows; r++) {
    const double *logits = inputs[0] + r * columns;
    int64_t target = (int64_t)inputs[1][r];
    outputs[1][r] = log_sum_exp(logits, columns);
    if (target == node_int(node, "ignore")) continue;
    double s = node_real(node, "smoothing"), lse = outputs[1][r];
    total += lse - (1 - s) * logits[target] - s * average(logits, columns) + node_real(node, "z") * lse * lse;
    counted++;
  }
  outputs[0][0] = total / (double)counted;
  outputs[2][0] = 1 / (double)counted;
}

static void gradient(struct builder *builder, const struct node *node, struct value *const *dy, struct value **dx) {
  struct value *inputs[] = {dy[0], node->inputs[0], node->outputs[1], node->outputs[2], node->inputs[1]};
  dx[0] = builder_op(builder, "cross_entropy_backward", inputs, 5, node->attributes, N_ATTRIBUTES);
}

static int64_t index_limit(const struct node *node, int input) {
  const struct shape *logits = &node->inputs[0]->shape;
  return input == 1 ? logits->dim[logits->rank - 1] : 0;
}

static struct node *over_matmul(struct builder *builder, const struct node *node, struct value *a, struct value *b,
                                int64_t rows, int64_t pitch) {
  struct value *inputs[] = {a, b, node->inputs[1]};
  struct attribute attributes[N_ATTRIBUTES + 2] = {node->attributes[0], node->attributes[1], node->attributes[2],
                                                   attribute_int("rows", rows), attribute_int("pitch", pitch)};
  bool saves = rows == op_rows(a->shape) && pitch != op_columns(b->shape);
  const char *name = saves ? "saved_cross_entropy" : "linear_cross_entropy";
  return builder_node(builder, name, inputs, 3, attributes, N_ATTRIBUTES + 2);
}

/* ---- A part of the classes on each rank ---- */

/* Of a part of the classes of each row a rank has two numbers (gen/ops/cross_entropy_part.c), of which all ranks make
 * the whole loss. Of a part of the rows it has their mean, and ranks have as many. */
static bool place(const struct node *node, int seed, int64_t ranks, struct placement *placements) {
  const struct placement split = placements[seed];
  (void)ranks;
  if (seed > 1) return false;
  if (split.dim < node->inputs[1]->shape.rank) {
    placements[0] = placements[1] = split;
    placements[2] = (struct placement){.form = PLACED_MEAN};
    return true;
  }
  placements[1] = placements[2] = (struct placement){.form = PLACED_WHOLE};
  return split.blocks == 1;
}

/* Classes, if they are so many that their matmul is more than what ranks then exchange. */
static bool tried(const struct node *node, int *input, int *dim) {
  enum { MANY = 64 };
  *input = 0;
  *dim = node->inputs[0]->shape.rank - 1;
  return op_columns(node->inputs[0]->shape) >= MANY;
}

/* What a rank has of each row, which is two numbers; where its classes are padded, of those that it has. */
static struct node *build_part(struct builder *builder, const struct node *node, int64_t whole, int64_t ranks,
                               int64_t axis) {
  int64_t classes = op_columns(node->inputs[0]->shape);
  bool padded = classes * ranks > whole;
  struct value *inputs[] = {node->inputs[0],
                            op_own_index(builder, node->inputs[1], classes, whole, axis, node_int(node, "ignore")),
                            padded ? op_own_extent(builder, classes, whole, axis) : NULL};
  struct attribute attributes[] = {attribute_int("ignore", -1), node->attributes[1], attribute_int("classes", whole)};
  return builder_node(builder, "cross_entropy_part", inputs, 2 + padded, attributes, 3);
}

/* Those of all ranks are gathered at once: [2][rows] of each to [2][ranks rows]. */
static struct node *over_parts(struct builder *builder, const struct node *node, int64_t whole, int64_t ranks,
                               int64_t axis) {
  struct node *part = build_part(builder, node, whole, ranks, axis);
  struct attribute below = attribute_int("axis", 0);
  struct value *both = builder_op(builder, "concat", part->outputs, 2, &below, 1);
  struct value *all = op_exchange_parts(builder, "all_gather", both,
                                        (struct op_parts){.axis = axis, .ranks = ranks, .dim = 1, .blocks = 1});
  struct value *inputs[3] = {NULL, NULL, node->inputs[1]};
  for (int i = 0; i < 2; i++)
    inputs[i] =
        op_reshape(builder, op_slice(builder, all, 0, i, 1), shape_of(2, ranks, op_rows(node->inputs[0]->shape)));
  struct attribute of_all[] = {node->attributes[0], node->attributes[2], attribute_int("ranks", ranks)};
  return builder_node(builder, "cross_entropy_combined", inputs, 3, of_all, 3);
}

static void lower(struct stablehlo *hlo) {
  const struct hlo_losses losses = op_lower_cross_entropy(hlo, hlo_input(hlo, 0), hlo_raw_input(hlo, 1));
  hlo_result(hlo, 0, losses.loss);
  hlo_result(hlo, 1, losses.lse);
  hlo_result(hlo, 2, losses.scale);
}

static const struct op_kind kind = {
    .name = "cross_entropy",
    .lower.write = lower,
    .class = OP_KERNEL,
    .input_names = {"logits", "targets"},
    .output_names = {"loss", "lse", "scale"},
    .infer = infer,
    .gradient = gradient,
    .types.autocast = {AUTOCAST_FLOAT32, AUTOCAST_FLOAT32},
    .cost.flops_each = 4,
    .kernel.noted_input = 1 + 1,
    .index.limit = index_limit,
    .index.ignores = true,
    .evaluation.mean = op_mean_over_targets,
    .fusion.over_matmul = over_matmul,
    .choice.variants = op_threads,
    .choice.what = "threads",
    .ranks.place = place,
    .ranks.pads = true, /* classes */
    .ranks.tried = tried,
    .ranks.over_parts = over_parts,
    .reference.evaluate = reference,
};

/* ---- Backward ---- */

static int infer_backward(struct arena *arena, const struct node *node, struct shape *shapes, enum dtype *dtypes,
                          const char **error) {
  if (!op_check_shape(arena, node, 0, (struct shape){0}, "the gradient of a scalar", error)) return 0;
  return op_result(shapes, dtypes, node->inputs[1]->shape, node->inputs[1]->dtype);
}

static void reference_backward(const struct node *node, const double *const *inputs, double *const *outputs) {
  int64_t columns = op_columns(node->inputs[1]->shape), rows = op_rows(node->inputs[1]->shape);
  double s = node_real(node, "smoothing");
  for (int64_t r = 0; r < rows; r++) {
    const double *logits = inputs[1] + r * columns;
    int64_t target = (int64_t)inputs[4][r];
    double factor = target == node_int(node, "ignore") ? 0 : inputs[0][0] * inputs[3][0], lse = inputs[2][r];
    for (int64_t c = 0; c < columns; c++) {
      double p = exp(logits[c] - lse) * (1 + 2 * node_real(node, "z") * lse);
      outputs[0][r * columns + c] = factor * (p - s / (double)columns - (c == target ? 1 - s : 0));
    }
  }
}

static double flops_backward(const struct node *node) {
  return op_flops_each(node, 1, 3);
}

static void lower_backward(struct stablehlo *hlo) {
  hlo_result(hlo, 0,
             op_lower_cross_entropy_backward(hlo, hlo_input(hlo, 0), hlo_input(hlo, 1), hlo_input(hlo, 2),
                                             hlo_input(hlo, 3), hlo_raw_input(hlo, 4)));
}

static const struct op_kind kind_backward = {
    .name = "cross_entropy_backward",
    .lower.write = lower_backward,
    .class = OP_KERNEL,
    .template_name = "cross_entropy",
    .input_names = {"d_loss", "logits", "lse", "scale", "targets"},
    .output_names = {"dlogits"},
    .infer = infer_backward,
    .memory.accumulates = 1,
    .memory.in_place = {2}, /* of the logits */
    .types.autocast = {AUTOCAST_FLOAT32, AUTOCAST_FLOAT32},
    .cost.flops = flops_backward,
    .choice.variants = op_threads,
    .choice.what = "threads",
    .reference.evaluate = reference_backward,
};

/* ---- Functions ---- */

static struct value *cross_entropy(struct builder *builder, const struct argument *arguments, int64_t ignored,
                                   double smoothing, double z) {
  struct value *inputs[] = {op_tensor(arguments, 0), op_tensor(arguments, 1)};
  if (smoothing < 0 || smoothing > 1) {
    builder_error(builder, "cross_entropy: label smoothing must be within 0 and 1, not %g", smoothing);
    return NULL;
  }
  struct attribute attributes[N_ATTRIBUTES] = {attribute_int("ignore", ignored), attribute_real("smoothing", smoothing),
                                               attribute_real("z", z)};
  return builder_op(builder, "cross_entropy", inputs, 2, attributes, N_ATTRIBUTES);
}

static struct value *build(struct builder *builder, const struct argument *arguments, int count) {
  (void)count;
  return cross_entropy(builder, arguments, IGNORE_DEFAULT, 0, 0);
}

static struct value *build_ignore(struct builder *builder, const struct argument *arguments, int count) {
  (void)count;
  return cross_entropy(builder, arguments, arguments[2].integer, 0, 0);
}

/* cross_entropy_smooth(logits, targets, smoothing) */
static struct value *build_smooth(struct builder *builder, const struct argument *arguments, int count) {
  (void)count;
  return cross_entropy(builder, arguments, IGNORE_DEFAULT, arguments[2].real, 0);
}

/* cross_entropy_z(logits, targets, coefficient) */
static struct value *build_z(struct builder *builder, const struct argument *arguments, int count) {
  (void)count;
  return cross_entropy(builder, arguments, IGNORE_DEFAULT, 0, arguments[2].real);
}

/* cross_entropy_with(logits, targets, ignored, smoothing, coefficient) */
static struct value *build_with(struct builder *builder, const struct argument *arguments, int count) {
  (void)count;
  return cross_entropy(builder, arguments, arguments[2].integer, arguments[3].real, arguments[4].real);
}

const struct op_file op_file_cross_entropy = {
    .name = "cross_entropy",
    .kinds = (const struct op_kind *const[]){&kind, &kind_backward, NULL},
    .functions = (const struct op_function[]){{"cross_entropy", .build = build},
                                              {"cross_entropy_ignore", .build = build_ignore},
                                              {"cross_entropy_smooth", .build = build_smooth},
                                              {"cross_entropy_z", .build = build_z},
                                              {"cross_entropy_with", .build = build_with},
                                              {0}},
};
