/* y = x / (1 - p) where a random number is at least p, else 0 (Srivastava et al., JMLR 15, 2014; scaled in training as
 * PyTorch does). dx is the same of dy with the same numbers: `site` says which ones. On ranks that divide it, `range`
 * elements in a row are of each of `ranks` ranks along `axis`, or, `balanced`, of twice as many chunks the rank has the
 * one of its number and the one as far from the end. */
#include <math.h>
#include <string.h>

#include "gen/onnx/onnx.h"
#include "gen/ops/support/support.h"
#include "gen/stablehlo/stablehlo.h"

/* ---- On ranks that divide it ---- */

/* An attribute of a node of which ranks have parts; `none` of any other. */
static int64_t attribute_or(const struct node *node, const char *name, int64_t none) {
  for (int i = 0; i < node->n_attributes; i++)
    if (strcmp(node->attributes[i].name, name) == 0) return node_int(node, name);
  return none;
}

/* Elements in a row that a rank has of each block. */
static int64_t range_of(struct placement split, struct shape shape, int64_t ranks) {
  int64_t parts = ranks * split.blocks * (split.balanced ? 2 : 1);
  return shape.dim[split.dim] / parts * shape_product(shape, split.dim + 1, shape.rank);
}

/* A rank draws what one rank draws for the same elements: four of them come from one counter. Ranks divide it along one
 * axis. */
static bool place(const struct node *node, int seed, int64_t ranks, struct placement *placements) {
  const struct placement split = placements[seed];
  placements[0] = placements[1] = split;
  return attribute_or(node, "ranks", 1) == 1 && placement_fits(split, node->inputs[0]->shape, ranks) &&
         range_of(split, node->inputs[0]->shape, ranks) % 4 == 0;
}

static void shorten(struct node *node, const struct placement *placements, int64_t ranks) {
  int64_t range = range_of(placements[0], node->outputs[0]->shape, 1);
  node->attributes[node->n_attributes++] = attribute_int("range", range);
  node->attributes[node->n_attributes++] = attribute_int("ranks", ranks);
  node->attributes[node->n_attributes++] = attribute_int("balanced", placements[0].balanced);
}

static int part_axis(const struct node *node) {
  return (int)attribute_or(node, "axis", -1);
}

/* Which element of the whole element i of rank `rank`'s part is. */
static int64_t in_whole(const struct node *node, int64_t i) {
  int64_t ranks = attribute_or(node, "ranks", 1), rank = attribute_or(node, "rank", 0);
  int64_t range = attribute_or(node, "range", INT64_MAX), at = i / range;
  if (ranks == 1) return i;
  if (attribute_or(node, "balanced", 0))
    return (at / 2 * 2 * ranks + (at % 2 ? 2 * ranks - 1 - rank : rank)) * range + i % range;
  return (at * ranks + rank) * range + i % range;
}

/* ---- The kind ---- */

static void reference(const struct node *node, const double *const *inputs, double *const *outputs) {
  double p = node_real(node, "p"), threshold = round(p * 4294967296.0);
  uint32_t site = (uint32_t)node_int(node, "site");
  for (int64_t i = 0; i < shape_count(node->outputs[0]->shape); i++)
    outputs[0][i] = op_random_word((uint64_t)in_whole(node, i), site) < threshold ? 0 : inputs[0][i] / (1 - p);
}

struct value *op_dropout(struct builder *builder, struct value *x, double p, int64_t site) {
  struct attribute attributes[] = {attribute_real("p", p), attribute_int("site", site)};
  return builder_op(builder, "dropout", &x, 1, attributes, 2);
}

static void gradient(struct builder *builder, const struct node *node, struct value *const *dy, struct value **dx) {
  dx[0] = builder_op(builder, "dropout", dy, 1, node->attributes, node->n_attributes);
}

static struct value *evaluated(struct builder *builder, const struct node *node) {
  (void)builder;
  return node->inputs[0];
}

static void lower(struct stablehlo *hlo) {
  const struct node *node = hlo_node(hlo);
  const double p = node_real(node, "p");
  const struct shape shape = node->outputs[0]->shape;
  const struct hlo words = hlo_random_words(hlo, shape_count(shape), node_int(node, "site"));
  const struct hlo kept = hlo_compare(hlo, "GE", hlo_reshape(hlo, words, shape), hlo_number(round(p * 4294967296.0)));
  const struct hlo y = hlo_mul(hlo, hlo_input(hlo, 0), hlo_number(1 / (1 - p)));
  hlo_result(hlo, 0, hlo_select(hlo, kept, y, hlo_number(0)));
}

/* In inference it is x. */
static void write_onnx(struct onnx *onnx) {
  onnx_ignore(onnx, "p");
  onnx_ignore(onnx, "site");
  onnx_result(onnx, 0, onnx_input(onnx, 0));
}

static const struct op_kind kind = {
    .name = "dropout",
    .lower.write = lower,
    .onnx.write = write_onnx,
    .class = OP_KERNEL,
    .input_names = {"x"},
    .output_names = {"y"},
    .infer = op_infer_like,
    .gradient = gradient,
    .memory.in_place = {1},
    .reference.evaluate = reference,
    .kernel.random = true,
    .ranks.place = place,
    .ranks.shorten = shorten,
    .ranks.part_axis = part_axis,
    .evaluation.substitute = evaluated,
};

/* dropout(x, p): x itself when p is 0. */
static struct value *build(struct builder *builder, const struct argument *arguments, int count) {
  (void)count;
  struct value *x = op_tensor(arguments, 0);
  double p = arguments[1].real;
  if (x == NULL) return NULL;
  if (!(p >= 0 && p < 1)) {
    builder_error(builder, "dropout: the probability must be at least 0 and below 1, not %g", p);
    return NULL;
  }
  return p == 0 ? x : op_dropout(builder, x, p, builder_random_count(builder));
}

const struct op_file op_file_dropout = {
    .name = "dropout",
    .kinds = (const struct op_kind *const[]){&kind, NULL},
    .functions = (const struct op_function[]){{"dropout", .build = build}, {0}},
};
