/* Rows of groups, of which each rank along an axis of the mesh has some: rows go to the rank of their group, and come
 * back (Lepikhin et al., "GShard", arXiv:2006.16668, section 3.3; torch.distributed's all_to_all_single). `axis` is an
 * enum axis, of `ranks` ranks; of G groups rank r has G / ranks from r G / ranks on.
 *
 * exchange_starts: all = the starts [G + 1] of each rank's rows, which are sorted by group, and own = where the groups
 * of this rank start among the rows that come to it: group by group, and of a group those of rank 0 first.
 * dispatch_rows: y [ranks n][C] = the rows of all ranks that are of this one's groups, in that order, and 0 after them.
 * There is space for all rows of all ranks.
 * collect_rows: y [n][C] = what the ranks of their groups have made of this rank's rows, at their positions; 0 for rows
 * after the last group. The gradient of either is the other. Output 1 of both is workspace, of ranks n rows: for
 * devices whose collectives move as much in each step (target_ranks.fixed_sizes). */
#include <string.h>

#include "gen/ops/support/support.h"

/* ---- Where groups start ---- */

static int64_t groups_of(const struct value *all) {
  return all->shape.dim[1] - 1;
}

static int infer_starts(struct arena *arena, const struct node *node, struct shape *shapes, enum dtype *dtypes,
                        const char **error) {
  int64_t ranks = node_int(node, "ranks"), groups = shape_count(node->inputs[0]->shape) - 1;
  if (!op_check_dtype(arena, node, 0, DTYPE_INT32, error)) return 0;
  if (node->inputs[0]->shape.rank != 1 || groups < ranks || groups % ranks != 0)
    return op_fail(arena, node, error, "%s must be where groups start, which %lld ranks divide",
                   op_operand_text(arena, node, 0), (long long)ranks);
  shapes[0] = shape_of(1, groups / ranks + 1);
  shapes[1] = shape_of(2, ranks, groups + 1);
  dtypes[0] = dtypes[1] = DTYPE_INT32;
  return 2;
}

/* Of ranks that all have the same rows; this one is the first. */
static void reference_starts(const struct node *node, const double *const *inputs, double *const *outputs) {
  int64_t ranks = node_int(node, "ranks"), groups = shape_count(node->inputs[0]->shape) - 1;
  for (int64_t g = 0; g <= groups / ranks; g++) outputs[0][g] = (double)ranks * (inputs[0][g] - inputs[0][0]);
  for (int64_t i = 0; i < ranks * (groups + 1); i++) outputs[1][i] = inputs[0][i % (groups + 1)];
}

/* Rows of all ranks; starts of their own, too, are no more than that. */
static void range_starts(const struct node *node, int64_t none, int64_t *low, int64_t *high) {
  (void)none;
  *low = 0;
  *high = node_int(node, "ranks") * node_int(node, "rows");
}

static struct op_exchange exchanged_starts(const struct node *node) {
  return (struct op_exchange){.form = EXCHANGE_ALL_GATHER,
                              .what = "where groups start",
                              .count = shape_count(node->outputs[1]->shape),
                              .dtype = DTYPE_INT32,
                              .axis = (int)node_int(node, "axis")};
}

static const struct op_kind kind_starts = {
    .name = "exchange_starts",
    .class = OP_KERNEL,
    .template_name = "exchange_rows",
    .input_names = {"starts"},
    .output_names = {"own", "all"},
    .infer = infer_starts,
    .cost.flops = op_flops_none,
    .index.range = range_starts,
    .ranks.exchanged = exchanged_starts,
    .reference.evaluate = reference_starts,
};

/* ---- Rows ---- */

static int infer_rows(struct arena *arena, const struct node *node, struct shape *shapes, enum dtype *dtypes,
                      const char **error, bool back) {
  struct shape x = node->inputs[0]->shape, all = node->inputs[1]->shape;
  int64_t ranks = node_int(node, "ranks");
  if (!op_check_float(arena, node, 0, error) || !op_check_dtype(arena, node, 1, DTYPE_INT32, error)) return 0;
  if (x.rank != 2 || all.rank != 2 || all.dim[0] != ranks || (back && x.dim[0] % ranks != 0))
    return op_fail(arena, node, error, "%s must be [rows][columns], and %s [ranks][groups + 1]",
                   op_operand_text(arena, node, 0), op_operand_text(arena, node, 1));
  int64_t rows = back ? x.dim[0] / ranks : x.dim[0] * ranks;
  shapes[0] = op_with_extent(x, 0, rows);
  shapes[1] = back ? x : shapes[0];
  dtypes[0] = dtypes[1] = node->inputs[0]->dtype;
  return 2;
}

static int infer_dispatch(struct arena *arena, const struct node *node, struct shape *shapes, enum dtype *dtypes,
                          const char **error) {
  return infer_rows(arena, node, shapes, dtypes, error, false);
}

static int infer_collect(struct arena *arena, const struct node *node, struct shape *shapes, enum dtype *dtypes,
                         const char **error) {
  return infer_rows(arena, node, shapes, dtypes, error, true);
}

/* Of ranks that all have the same rows; this one is the first. */
static void reference_dispatch(const struct node *node, const double *const *inputs, double *const *outputs) {
  int64_t ranks = node_int(node, "ranks"), width = op_columns(node->inputs[0]->shape);
  double *to = outputs[0];
  memset(to, 0, (size_t)shape_count(node->outputs[0]->shape) * sizeof *to);
  for (int64_t g = 0; g < groups_of(node->inputs[1]) / ranks; g++)
    for (int64_t r = 0; r < ranks; r++) {
      int64_t first = (int64_t)inputs[1][g] * width, end = (int64_t)inputs[1][g + 1] * width;
      for (int64_t i = first; i < end; i++) *to++ = inputs[0][i];
    }
}

/* The same, where all ranks have made the same of their groups' rows. */
static void reference_collect(const struct node *node, const double *const *inputs, double *const *outputs) {
  int64_t ranks = node_int(node, "ranks"), width = op_columns(node->inputs[0]->shape);
  int64_t groups = groups_of(node->inputs[1]), each = groups / ranks;
  const double *all = inputs[1];
  memset(outputs[0], 0, (size_t)shape_count(node->outputs[0]->shape) * sizeof(double));
  for (int64_t g = 0; g < groups; g++) {
    double before = 0; /* rows of that rank's groups before this one */
    for (int64_t i = g / each * each; i < g; i++) before += (double)ranks * (all[i + 1] - all[i]);
    int64_t from = (int64_t)before * width, first = (int64_t)all[g] * width;
    for (int64_t i = first; i < (int64_t)all[g + 1] * width; i++) outputs[0][i] = inputs[0][from + i - first];
  }
}

static void gradient_by(struct builder *builder, const char *kind, const struct node *node, struct value *dy,
                        struct value **dx) {
  dx[0] = builder_op(builder, kind, (struct value *[]){dy, node->inputs[1]}, 2, node->attributes, node->n_attributes);
}

static void gradient_of_dispatch(struct builder *builder, const struct node *node, struct value *const *dy,
                                 struct value **dx) {
  gradient_by(builder, "collect_rows", node, dy[0], dx);
}

static void gradient_of_collect(struct builder *builder, const struct node *node, struct value *const *dy,
                                struct value **dx) {
  gradient_by(builder, "dispatch_rows", node, dy[0], dx);
}

/* Each row goes to one rank at most: of a rank's rows no more than all leave it, and where they come back no more than
 * all ranks have. In fixed sizes the rows of all ranks come together, and go back as sums of which all but one are 0.
 */
static struct op_exchange exchanged_rows(const struct node *node) {
  int64_t given = shape_count(node->inputs[0]->shape), taken = shape_count(node->outputs[0]->shape);
  return (struct op_exchange){.form = EXCHANGE_ALL_TO_ALL,
                              .what = "rows of groups",
                              .count = given,
                              .by_data = true,
                              .fixed = given < taken ? EXCHANGE_ALL_GATHER : EXCHANGE_REDUCE_SCATTER,
                              .most = given < taken ? taken : given,
                              .dtype = node->inputs[0]->dtype,
                              .axis = (int)node_int(node, "axis")};
}

static int64_t index_limit(const struct node *node, int input) {
  return input == 1 ? node_int(node, "ranks") * node_int(node, "rows") + 1 : 0;
}

static const struct op_kind kind_dispatch = {
    .name = "dispatch_rows",
    .class = OP_KERNEL,
    .template_name = "exchange_rows",
    .input_names = {"x", "all"},
    .output_names = {"y", "workspace"},
    .infer = infer_dispatch,
    .gradient = gradient_of_dispatch,
    .memory.workspace = 1u << 1,
    .cost.flops = op_flops_none,
    .index.limit = index_limit,
    .ranks.exchanged = exchanged_rows,
    .reference.evaluate = reference_dispatch,
};

static const struct op_kind kind_collect = {
    .name = "collect_rows",
    .class = OP_KERNEL,
    .template_name = "exchange_rows",
    .input_names = {"x", "all"},
    .output_names = {"y", "workspace"},
    .infer = infer_collect,
    .gradient = gradient_of_collect,
    .memory.workspace = 1u << 1,
    .cost.flops = op_flops_none,
    .index.limit = index_limit,
    .ranks.exchanged = exchanged_rows,
    .reference.evaluate = reference_collect,
};

const struct op_file op_file_exchange_rows = {
    .name = "exchange_rows",
    .kinds = (const struct op_kind *const[]){&kind_starts, &kind_dispatch, &kind_collect, NULL},
};
