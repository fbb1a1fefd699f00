/* Attention whose keys and values are passed round the ranks along an axis of the mesh (Liu, Zaharia, Abbeel, "Ring
 * Attention with Blockwise Transformers", arXiv:2310.01889, section 3): each rank has its queries' part of the
 * sequence, and in `ranks` steps the keys and values of one rank after the other, which it hands on. What a step gives
 * is added to what earlier ones gave, under the highest score so far of each query (Dao et al., arXiv:2205.14135,
 * section 3.1). In the backward the gradients of keys and values are passed with them, in float32, and end where those
 * came from.
 *
 * Of 2 `ranks` chunks of the sequence a rank has the one of its number and the one as far from the end. So, where
 * attention is causal, two of four pairs of chunks of a rank's queries and another one's keys have scores: the last
 * chunk of queries sees the first chunk of keys, and the first chunk of queries sees it too, where that rank comes
 * before this one, or else the last chunk of queries the last chunk of keys. `starts` is of this rank's queries, and
 * its numbers are of the sequence's positions. A bias of scores has rows of this rank's queries and all keys, in the
 * sequence's order.
 *
 * Outputs after lse, and after dv, are workspace: sums of each query's values and weights; keys and values of two
 * ranks; in the backward, gradients of those in float32. */
#include "gen/ops/support/attention.h"

/* ---- Shapes ---- */

static int64_t count_of(const struct value *value) {
  return shape_count(value->shape);
}

static struct shape rows_of(struct shape q) {
  return shape_of(2, shape_count(op_leading(q)), op_columns(q));
}

static bool check(struct arena *arena, const struct node *node, int q, const char **error) {
  const struct value *queries = node->inputs[q], *keys = node->inputs[q + 1];
  if (queries->shape.dim[2] == keys->shape.dim[2] && queries->shape.dim[2] % 2 == 0) return true;
  op_fail(arena, node, error, "%s and %s must have the same positions, of two chunks", op_operand_text(arena, node, q),
          op_operand_text(arena, node, q + 1));
  return false;
}

static int infer(struct arena *arena, const struct node *node, struct shape *shapes, enum dtype *dtypes,
                 const char **error) {
  const bool biased = node->n_inputs > 3 && dtype_is_float(node->inputs[3]->dtype);
  int count = (biased ? op_infer_attended : op_infer_attention)(arena, node, shapes, dtypes, error);
  if (count == 0 || !check(arena, node, 0, error)) return 0;
  shapes[2] = rows_of(node->inputs[0]->shape);
  shapes[3] = shapes[1];
  shapes[4] = shape_of(2, 4, count_of(node->inputs[1]));
  dtypes[2] = dtypes[3] = DTYPE_FLOAT32;
  dtypes[4] = node->inputs[1]->dtype;
  return 5;
}

static int64_t all_keys(const struct node *node, int keys) {
  return node_int(node, "ranks") * node->inputs[keys]->shape.dim[2];
}

static int infer_biased(struct arena *arena, const struct node *node, struct shape *shapes, enum dtype *dtypes,
                        const char **error) {
  int count = infer(arena, node, shapes, dtypes, error);
  if (count == 0 || !op_check_bias(arena, node, 3, node->inputs[0], all_keys(node, 1), error)) return 0;
  shapes[1] = op_lse_in_parts(shapes[1]);
  return count;
}

static int infer_backward(struct arena *arena, const struct node *node, struct shape *shapes, enum dtype *dtypes,
                          const char **error) {
  int count = op_infer_attention_backward(arena, node, shapes, dtypes, error);
  if (count == 0 || !check(arena, node, 1, error)) return 0;
  shapes[3] = rows_of(node->inputs[1]->shape);
  shapes[4] = shapes[5] = shape_of(2, 4, count_of(node->inputs[2]));
  dtypes[3] = dtypes[5] = DTYPE_FLOAT32;
  dtypes[4] = node->inputs[2]->dtype;
  return 6;
}

static int infer_biased_backward(struct arena *arena, const struct node *node, struct shape *shapes, enum dtype *dtypes,
                                 const char **error) {
  int count = infer_backward(arena, node, shapes, dtypes, error);
  if (count == 0 || !op_check_bias(arena, node, 6, node->inputs[1], all_keys(node, 2), error)) return 0;
  return op_infer_bias_gradient(node, count, all_keys(node, 2), shapes, dtypes);
}

/* ---- What ranks exchange ---- */

static struct op_exchange passed(const struct node *node, const struct value *keys, enum dtype dtype,
                                 const char *what) {
  return (struct op_exchange){.form = EXCHANGE_SEND,
                              .what = what,
                              .count = 2 * count_of(keys),
                              .dtype = dtype,
                              .axis = (int)node_int(node, "axis")};
}

static struct op_exchange passed_keys(const struct node *node, int keys) {
  return passed(node, node->inputs[keys], node->inputs[keys]->dtype, "keys and values");
}

static struct op_exchange exchanged(const struct node *node) {
  return passed_keys(node, 1);
}

static bool exchanged_next(const struct node *node, int count, struct op_exchange *exchange) {
  *exchange = passed_keys(node, 1);
  return count < node_int(node, "ranks") - 1;
}

static struct op_exchange exchanged_back(const struct node *node) {
  return passed_keys(node, 2);
}

/* Gradients follow the keys from the second step on, and the last time alone. */
static bool exchanged_back_next(const struct node *node, int count, struct op_exchange *exchange) {
  const int all = 2 * ((int)node_int(node, "ranks") - 1);
  const bool gradients = count % 2 == 0 || count == all - 1;
  *exchange =
      gradients ? passed(node, node->inputs[2], DTYPE_FLOAT32, "gradients of keys and values") : passed_keys(node, 2);
  return count < all;
}

static int axis_of(const struct node *node) {
  return (int)node_int(node, "axis");
}

/* ---- Cost ---- */

/* Two matmuls of this rank's queries and all keys, of which a causal mask leaves half. */
static double flops_of(const struct node *node, int q) {
  const struct shape queries = node->inputs[q]->shape;
  double keys = (double)node_int(node, "ranks") * (double)node->inputs[q + 1]->shape.dim[2];
  return 4.0 * (double)shape_count(queries) * (node_int(node, "causal") ? keys / 2 : keys);
}

static double flops(const struct node *node) {
  return flops_of(node, 0);
}

/* Five matmuls where forward has two. */
static double flops_backward(const struct node *node) {
  return 2.5 * flops_of(node, 1);
}

static int variants(const struct node *node, const int64_t *const *strides, const char **variants) {
  (void)strides;
  return op_attention_variants(node->inputs[1]->shape.dim[2] / 2, variants);
}

static int variants_backward(const struct node *node, const int64_t *const *strides, const char **variants) {
  (void)strides;
  return op_attention_backward_variants(node->inputs[2]->shape.dim[2] / 2, variants);
}

/* ---- The kinds ---- */

static void gradient(struct builder *builder, const struct node *node, struct value *const *dy, struct value **dx) {
  struct value *inputs[] = {dy[0],
                            node->inputs[0],
                            node->inputs[1],
                            node->inputs[2],
                            node->outputs[0],
                            node->outputs[1],
                            node->n_inputs > 3 ? node->inputs[3] : NULL};
  struct node *backward = builder_node(builder, "ring_attention_backward", inputs, 3 + node->n_inputs, node->attributes,
                                       node->n_attributes);
  for (int i = 0; i < 3 && backward != NULL; i++) dx[i] = backward->outputs[i];
}

static void biased_gradient(struct builder *builder, const struct node *node, struct value *const *dy,
                            struct value **dx) {
  op_biased_gradient(builder, node, "ring_biased_attention_backward", 6, dy[0], dx);
}

static int along(const struct node *node, int axis, int input) {
  (void)node;
  return axis == 0 && input < 3 ? 0 : AXIS_MIXED;
}

#define FORWARD                                                                                                        \
  .class = OP_KERNEL, .template_name = "ring_attention", .output_names = {"y", "lse", "sums", "total", "ring"},        \
  .memory.workspace = 1u << 2 | 1u << 3 | 1u << 4, .choice.variants = variants, .choice.what = "KV block size",        \
  .types.autocast = {AUTOCAST_BITS16, AUTOCAST_BITS16}, .cost.flops = flops, .ranks.exchanged = exchanged,             \
  .ranks.exchanged_next = exchanged_next, .ranks.part_axis = axis_of

#define BACKWARD                                                                                                       \
  .class = OP_KERNEL, .template_name = "ring_attention", .choice.variants = variants_backward,                         \
  .choice.what = "KV block size", .types.autocast = {AUTOCAST_BITS16, AUTOCAST_BITS16}, .cost.flops = flops_backward,  \
  .ranks.exchanged = exchanged_back, .ranks.exchanged_next = exchanged_back_next, .ranks.part_axis = axis_of

static const struct op_kind kind = {
    FORWARD,
    .name = "ring_attention",
    .input_names = {"q", "k", "v", "starts"},
    .infer = infer,
    .sequence.along = along,
    .gradient = gradient,
    .layout.accepts = op_attention_accepts,
    .ranks.place = op_place_attention,
    .reference.evaluate = op_attention_reference,
};

static const struct op_kind kind_backward = {
    BACKWARD,
    .name = "ring_attention_backward",
    .input_names = {"dy", "q", "k", "v", "y", "lse", "starts"},
    .output_names = {"dq", "dk", "dv", "sums", "ring", "slopes"},
    .infer = infer_backward,
    .layout.accepts = op_attention_accepts,
    .memory.workspace = 1u << 3 | 1u << 4 | 1u << 5,
    .reference.evaluate = op_attention_backward_reference,
};

static const struct op_kind kind_biased = {
    FORWARD,
    .name = "ring_biased_attention",
    .input_names = {"q", "k", "v", "bias"},
    .infer = infer_biased,
    .gradient = biased_gradient,
    .layout.accepts = op_biased_accepts,
    .ranks.place = op_place_biased,
    .reference.evaluate = op_biased_reference,
};

static const struct op_kind kind_biased_backward = {
    BACKWARD,
    .name = "ring_biased_attention_backward",
    .input_names = {"dy", "q", "k", "v", "y", "lse", "bias"},
    .output_names = {"dq", "dk", "dv", "sums", "ring", "slopes", "dbias", "bias_sums"},
    .infer = infer_biased_backward,
    .layout.accepts = op_biased_accepts,
    .memory.workspace = 1u << 3 | 1u << 4 | 1u << 5 | 1u << 7,
    .memory.accumulates = 1u << 6,
    .reference.evaluate = op_biased_backward_reference,
};

struct value *op_ring_attention(struct builder *builder, const struct node *node, int64_t ranks, int64_t axis) {
  struct value *inputs[] = {node->inputs[0], node->inputs[1], node->inputs[2],
                            node->n_inputs > 3 ? node->inputs[3] : NULL};
  const bool biased = inputs[3] != NULL && dtype_is_float(inputs[3]->dtype);
  const struct op_parts parted = {
      .axis = axis, .ranks = ranks, .dim = 1, .blocks = 1, .partial = true, .balanced = true};
  struct attribute attributes[] = {
      attribute_int("causal", node_int(node, "causal")), attribute_int("window", node_int(node, "window")),
      attribute_real("scale", node_real(node, "scale")), attribute_int("ranks", ranks), attribute_int("axis", axis)};
  if (node->n_inputs > 3 && !biased) inputs[3] = op_exchange_parts(builder, "part_of", node->inputs[3], parted);
  return builder_op(builder, biased ? "ring_biased_attention" : "ring_attention", inputs, node->n_inputs, attributes,
                    5);
}

const struct op_file op_file_ring_attention = {
    .name = "ring_attention",
    .kinds = (const struct op_kind *const[]){&kind, &kind_backward, &kind_biased, &kind_biased_backward, NULL},
};
