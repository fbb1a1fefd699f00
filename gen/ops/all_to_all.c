/* y = x with another dimension split among the ranks along an axis of the mesh (DeepSpeed-Ulysses, Jacobs et al.,
 * arXiv:2309.14509, section 3.1): dimension `split` of x is whole and y has this rank's part of it, dimension
 * `gathered` of x is this rank's part and y has all of it, in the order of the ranks. dx is dy with the two exchanged.
 * `axis` is an enum axis, `ranks` their number along it. `workspace` has x's elements. */
#include <string.h>

#include "gen/ops/support/support.h"

enum { N_ATTRIBUTES = 4 };

static int infer(struct arena *arena, const struct node *node, struct shape *shapes, enum dtype *dtypes,
                 const char **error) {
  struct shape x = node->inputs[0]->shape, y = x;
  int64_t split = node_int(node, "split"), gathered = node_int(node, "gathered"), ranks = node_int(node, "ranks");
  if (split == gathered || split < 0 || gathered < 0 || split >= x.rank || gathered >= x.rank ||
      x.dim[split] % ranks != 0)
    return op_fail(arena, node, error, "%lld ranks cannot divide dimension %lld of %s for dimension %lld",
                   (long long)ranks, (long long)split, op_operand_text(arena, node, 0), (long long)gathered);
  y.dim[split] /= ranks;
  y.dim[gathered] *= ranks;
  shapes[0] = y;
  shapes[1] = x;
  dtypes[0] = dtypes[1] = node->inputs[0]->dtype;
  return 2;
}

/* Of one rank. */
static void reference(const struct node *node, const double *const *inputs, double *const *outputs) {
  memcpy(outputs[0], inputs[0], (size_t)shape_count(node->outputs[0]->shape) * sizeof(double));
}

static void gradient(struct builder *builder, const struct node *node, struct value *const *dy, struct value **dx) {
  struct attribute attributes[N_ATTRIBUTES] = {
      attribute_int("axis", node_int(node, "axis")), attribute_int("ranks", node_int(node, "ranks")),
      attribute_int("split", node_int(node, "gathered")), attribute_int("gathered", node_int(node, "split"))};
  dx[0] = builder_op(builder, "all_to_all", dy, 1, attributes, N_ATTRIBUTES);
}

/* Ranks along another axis have parts of either dimension, too: of the whole one as many blocks more as there are ranks
 * here, each of which has its own. */
static bool place(const struct node *node, int seed, int64_t ranks, struct placement *placements) {
  const int64_t own = node_int(node, "ranks");
  const int whole_in[2] = {(int)node_int(node, "split"), (int)node_int(node, "gathered")}; /* x and y */
  const struct placement split = placements[seed];
  struct placement *other = &placements[1 - seed];
  (void)ranks;
  *other = split;
  if (split.dim == whole_in[1 - seed]) other->blocks = split.blocks * own;
  if (split.dim == whole_in[seed]) other->blocks = split.blocks / own;
  return split.dim != whole_in[seed] || split.blocks % own == 0;
}

static struct op_exchange exchanged(const struct node *node) {
  return (struct op_exchange){.what = "parts of sequences",
                              .form = EXCHANGE_ALL_TO_ALL,
                              .count = shape_count(node->outputs[0]->shape),
                              .dtype = node->outputs[0]->dtype,
                              .axis = (int)node_int(node, "axis")};
}

static const struct op_kind kind = {
    .name = "all_to_all",
    .class = OP_KERNEL,
    .input_names = {"x"},
    .output_names = {"y", "workspace"},
    .infer = infer,
    .gradient = gradient,
    .memory.workspace = 1u << 1,
    .cost.flops = op_flops_none,
    .ranks.place = place,
    .ranks.exchanged = exchanged,
    .reference.evaluate = reference,
};

const struct op_file op_file_all_to_all = {
    .name = "all_to_all",
    .kinds = (const struct op_kind *const[]){&kind, NULL},
};
