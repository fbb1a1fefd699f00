/* Attention with numbers added to its scores: y = P v, P = softmax(scale q k^T + bias), causal or not. The bias is
 * [batch][heads][queries][keys], each of which may be 1. Backward makes P again (gen/ops/attention.c), and the bias's
 * gradient is P (dy v^T - rowsum(dy y)), summed over the dimensions that are 1: over the batch in the kernel, in
 * `parts` of it that threads have at a time, so that no [batch][queries][keys] is in memory. lse has two parts
 * (op_lse_in_parts), so that P is exact where a bias hides all keys of a query: it is 1 / n of n keys. */
#include <math.h>

#include "gen/onnx/onnx.h"
#include "gen/ops/support/attention.h"

/* Heads of keys times parts of the batch that keep threads busy. */
enum { BUSY = 16 };

/* ---- Shapes ---- */

bool op_check_bias(struct arena *arena, const struct node *node, int index, const struct value *q, int64_t keys,
                   const char **error) {
  const struct shape bias = node->inputs[index]->shape, heads = q->shape;
  const struct shape scores = shape_of(4, heads.dim[0], heads.dim[1], heads.dim[2], keys);
  bool fits = bias.rank == 4 && node->inputs[index]->dtype == q->dtype;
  for (int i = 0; i < 4 && fits; i++) fits = bias.dim[i] == 1 || bias.dim[i] == scores.dim[i];
  if (fits) return true;
  return op_fail(arena, node, error, "%s must broadcast to the scores' %s", op_operand_text(arena, node, index),
                 shape_text(arena, scores));
}

struct shape op_lse_in_parts(struct shape rows) {
  return shape_of(3, (int64_t)2, rows.dim[0] * rows.dim[1], rows.dim[2]);
}

static int infer(struct arena *arena, const struct node *node, struct shape *shapes, enum dtype *dtypes,
                 const char **error) {
  int count = op_infer_attended(arena, node, shapes, dtypes, error);
  if (count == 0 || !op_check_bias(arena, node, 3, node->inputs[0], node->inputs[1]->shape.dim[2], error)) return 0;
  shapes[1] = op_lse_in_parts(shapes[1]);
  return count;
}

/* Into how many parts the batch is divided: it is the bias's own, or as many that divide it as keep threads busy. */
static int64_t parts_of(const struct node *node) {
  const int64_t batch = node->inputs[1]->shape.dim[0], heads = node->inputs[2]->shape.dim[1];
  int64_t parts = 1;
  if (node->inputs[6]->shape.dim[0] == batch) return batch;
  while (parts < batch && (batch % parts != 0 || parts * heads < BUSY)) parts++;
  return parts;
}

int op_infer_bias_gradient(const struct node *node, int count, int64_t keys, struct shape *shapes, enum dtype *dtypes) {
  const struct shape q = node->inputs[1]->shape;
  if (!node_int(node, "learnt")) return count;
  shapes[count] = shape_of(4, node->inputs[6]->shape.dim[0], q.dim[1], q.dim[2], keys);
  shapes[count + 1] = op_with_extent(shapes[count], 0, parts_of(node));
  dtypes[count] = dtypes[count + 1] = DTYPE_FLOAT32;
  return count + 2;
}

static int infer_backward(struct arena *arena, const struct node *node, struct shape *shapes, enum dtype *dtypes,
                          const char **error) {
  const int64_t keys = node->inputs[2]->shape.dim[2];
  int count = op_infer_attention_backward(arena, node, shapes, dtypes, error);
  if (count == 0 || !op_check_bias(arena, node, 6, node->inputs[1], keys, error)) return 0;
  return op_infer_bias_gradient(node, count, keys, shapes, dtypes);
}

/* ---- References ---- */

/* One head of queries of one sample. */
struct head {
  const double *q, *k, *v, *bias;
  int64_t queries, keys, columns, row, step; /* row, step: from a query and a key of the bias to the next */
  double scale;
  bool causal;
};

static struct head head_of(const struct node *node, int q, const double *const *inputs, int64_t b, int64_t h) {
  const struct shape queries = node->inputs[q]->shape, keys = node->inputs[q + 1]->shape;
  const int at = node->n_inputs - 1;
  const struct shape bias = node->inputs[at]->shape;
  struct head head = {.queries = queries.dim[2], .keys = keys.dim[2], .columns = queries.dim[3]};
  const int64_t key_head = b * keys.dim[1] + h / (queries.dim[1] / keys.dim[1]), size = bias.dim[2] * bias.dim[3];
  head.q = inputs[q] + (b * queries.dim[1] + h) * head.queries * head.columns;
  head.k = inputs[q + 1] + key_head * head.keys * head.columns;
  head.v = inputs[q + 2] + key_head * head.keys * head.columns;
  head.bias = inputs[at] + (bias.dim[0] > 1 ? b * bias.dim[1] * size : 0) + (bias.dim[1] > 1 ? h * size : 0);
  head.row = bias.dim[2] > 1 ? bias.dim[3] : 0;
  head.step = bias.dim[3] > 1 ? 1 : 0;
  head.scale = node_real(node, "scale");
  head.causal = node_int(node, "causal") != 0;
  return head;
}

static double dot(const double *a, const double *b, int64_t n) {
  double sum = 0;
  for (int64_t i = 0; i < n; i++) sum += a[i] * b[i];
  return sum;
}

static double score(const struct head *head, int64_t t, int64_t s) {
  if (head->causal && s > t) return -INFINITY;
  return head->scale * dot(head->q + t * head->columns, head->k + s * head->columns, head->columns) +
         head->bias[t * head->row + s * head->step];
}

void op_biased_reference(const struct node *node, const double *const *inputs, double *const *outputs) {
  const struct shape q = node->inputs[0]->shape;
  for (int64_t h = 0; h < q.dim[0] * q.dim[1]; h++)
    for (int64_t t = 0; t < q.dim[2]; t++) {
      const struct head head = head_of(node, 0, inputs, h / q.dim[1], h % q.dim[1]);
      double *y = outputs[0] + (h * q.dim[2] + t) * q.dim[3], highest = -INFINITY, sum = 0;
      for (int64_t s = 0; s < head.keys; s++) highest = fmax(highest, score(&head, t, s));
      for (int64_t s = 0; s < head.keys; s++) sum += exp(score(&head, t, s) - highest);
      for (int64_t c = 0; c < q.dim[3]; c++) y[c] = 0;
      for (int64_t s = 0; s < head.keys; s++)
        for (int64_t c = 0; c < q.dim[3]; c++)
          y[c] += exp(score(&head, t, s) - highest) / sum * head.v[s * q.dim[3] + c];
      outputs[1][h * q.dim[2] + t] = highest;
      outputs[1][(q.dim[0] * q.dim[1] + h) * q.dim[2] + t] = log(sum);
    }
}

/* Which output of a backward is the bias's gradient, before what it is added up in; -1: none is. */
static int learnt_output(const struct node *node) {
  return node_int(node, "learnt") ? node->n_outputs - 2 : -1;
}

/* What query t of head h of all and key s give. */
static void add_slopes(const struct node *node, const double *const *inputs, double *const *outputs, int64_t h,
                       int64_t t, int64_t s) {
  const struct shape q = node->inputs[1]->shape;
  const struct head head = head_of(node, 1, inputs, h / q.dim[1], h % q.dim[1]);
  const int64_t n = q.dim[3], row = h * q.dim[2] + t, key = head.k - inputs[2] + s * n;
  const double *dy = inputs[0] + row * n;
  const double p = exp(score(&head, t, s) - inputs[5][row] - inputs[5][q.dim[0] * q.dim[1] * q.dim[2] + row]);
  const double ds = p * (dot(dy, head.v + s * n, n) - dot(dy, inputs[4] + row * n, n));
  for (int64_t c = 0; c < n; c++) {
    outputs[0][row * n + c] += head.scale * ds * inputs[2][key + c];
    outputs[1][key + c] += head.scale * ds * inputs[1][row * n + c];
    outputs[2][key + c] += p * dy[c];
  }
  const int64_t of = node->inputs[6]->shape.dim[0] > 1 ? h : h % q.dim[1];
  const int learnt = learnt_output(node);
  if (learnt >= 0) outputs[learnt][(of * q.dim[2] + t) * head.keys + s] += ds;
}

void op_biased_backward_reference(const struct node *node, const double *const *inputs, double *const *outputs) {
  const struct shape q = node->inputs[1]->shape;
  const int64_t keys = node->inputs[2]->shape.dim[2];
  for (int o = 0; o < node->n_outputs; o++)
    for (int64_t i = 0; i < shape_count(node->outputs[o]->shape); i++) outputs[o][i] = 0;
  for (int64_t h = 0; h < q.dim[0] * q.dim[1]; h++)
    for (int64_t t = 0; t < q.dim[2]; t++)
      for (int64_t s = 0; s < keys; s++) add_slopes(node, inputs, outputs, h, t, s);
}

/* ---- What passes ask ---- */

void op_biased_gradient(struct builder *builder, const struct node *node, const char *kind, int output,
                        struct value *dy, struct value **dx) {
  struct value *const *in = node->inputs;
  struct value *inputs[] = {dy, in[0], in[1], in[2], node->outputs[0], node->outputs[1], in[3]};
  const bool learnt = builder_wants_gradient(builder, in[3]);
  struct attribute attributes[8];
  for (int i = 0; i < node->n_attributes; i++) attributes[i] = node->attributes[i];
  attributes[node->n_attributes] = attribute_int("learnt", learnt);
  struct node *backward = builder_node(builder, kind, inputs, 7, attributes, node->n_attributes + 1);
  for (int i = 0; i < 3 && backward != NULL; i++) dx[i] = backward->outputs[i];
  if (learnt && backward != NULL) dx[3] = op_unbroadcast(builder, backward->outputs[output], in[3]->shape);
}

static void gradient(struct builder *builder, const struct node *node, struct value *const *dy, struct value **dx) {
  op_biased_gradient(builder, node, "biased_attention_backward", 3, dy[0], dx);
}

bool op_biased_accepts(const struct node *node, bool output, int index, const int64_t *strides) {
  if (output && index >= 3) return op_is_dense(node->outputs[index]->shape, strides);
  return op_attention_accepts(node, output, index, strides);
}

static int along(const struct node *node, int axis, int input) {
  const bool wide = axis < 4 && node->inputs[3]->shape.dim[axis] > 1;
  if (input == 3 && (axis == 0 || axis == 2)) return wide ? axis : AXIS_WHOLE;
  if (axis == 2) return input == 0 ? 2 : node_int(node, "causal") ? AXIS_MIXED : AXIS_WHOLE;
  return axis == 0 ? 0 : AXIS_MIXED;
}

bool op_place_biased(const struct node *node, int seed, int64_t ranks, struct placement *placements) {
  const struct placement split = placements[seed];
  if (!op_place_attention(node, seed, ranks, placements)) return false;
  if (node->inputs[3]->shape.dim[split.dim] == 1) placements[3] = (struct placement){.form = PLACED_WHOLE};
  return true;
}

/* ---- Other operations ---- */

/* The bias, and far below all scores where the key comes after the query; rows: the queries' positions. */
static struct value *without_later(struct builder *builder, struct value *bias, struct value *rows, int64_t keys) {
  struct value *columns = op_apply(builder, "cast_float", (struct value *[]){op_arange(builder, keys)}, 1);
  rows = op_apply(builder, "cast_float", &rows, 1);
  if (rows == NULL || columns == NULL) return NULL;
  rows = op_reshape(builder, rows, shape_of(4, (int64_t)1, (int64_t)1, rows->shape.dim[0], (int64_t)1));
  struct value *later =
      op_greater(builder, op_reshape(builder, columns, shape_of(4, (int64_t)1, (int64_t)1, (int64_t)1, keys)), rows);
  return op_add(builder, bias, builder_cast(builder, op_scale(builder, later, -1e30), bias->dtype));
}

/* Heads that share keys are one after the other in the matmuls. */
static struct value *written_out(struct builder *builder, const struct node *node) {
  struct value *q = node->inputs[0], *k = node->inputs[1], *v = node->inputs[2], *bias = node->inputs[3];
  const int64_t batch = q->shape.dim[0], heads = q->shape.dim[1], t = q->shape.dim[2], d = q->shape.dim[3];
  const int64_t shared = k->shape.dim[1], s = k->shape.dim[2], rows = heads / shared * t;
  const double factor = node_real(node, "scale");
  struct value *scores =
      op_matmul(builder, op_reshape(builder, q, shape_of(4, batch, shared, rows, d)), op_matrix_transpose(builder, k));
  if (factor < 1 || factor > 1) scores = op_scale(builder, scores, factor);
  if (node_int(node, "causal")) bias = without_later(builder, bias, op_arange(builder, t), s);
  scores = op_add(builder, op_reshape(builder, scores, shape_of(4, batch, heads, t, s)), bias);
  struct value *weights = builder_unary(builder, "softmax", scores);
  weights = op_reshape(builder, weights, shape_of(4, batch, shared, rows, s));
  return op_reshape(builder, op_matmul(builder, weights, v), q->shape);
}

static bool gathers(const struct node *node, bool ring) {
  return !ring || node->inputs[0]->shape.dim[2] == node->inputs[1]->shape.dim[2];
}

/* Keys and values are gathered. What a rank runs does not depend on its number: a causal mask is a part of the bias. */
static struct value *over_positions(struct builder *builder, const struct node *node, int64_t ranks, int64_t axis,
                                    bool ring) {
  const struct op_parts parted = {
      .axis = axis, .ranks = ranks, .dim = 0, .blocks = 1, .partial = true, .balanced = true};
  if (ring) return op_ring_attention(builder, node, ranks, axis);
  struct value *k = op_gather_chunks(builder, node->inputs[1], 2, axis, ranks), *bias = node->inputs[3];
  struct value *v = op_gather_chunks(builder, node->inputs[2], 2, axis, ranks);
  struct value *positions = op_arange(builder, ranks * node->inputs[0]->shape.dim[2]);
  if (node_int(node, "causal"))
    bias = without_later(builder, bias, op_exchange_parts(builder, "part_of", positions, parted), k->shape.dim[2]);
  struct attribute attributes[] = {attribute_int("causal", 0), attribute_int("window", 0),
                                   attribute_real("scale", node_real(node, "scale"))};
  return builder_op(builder, "biased_attention", (struct value *[]){node->inputs[0], k, v, bias}, 4, attributes, 3);
}

static int variants(const struct node *node, const int64_t *const *strides, const char **variants) {
  (void)strides;
  return op_attention_variants(node->inputs[1]->shape.dim[2], variants);
}

static int variants_backward(const struct node *node, const int64_t *const *strides, const char **variants) {
  (void)strides;
  return op_attention_backward_variants(node->inputs[2]->shape.dim[2], variants);
}

static void write_onnx(struct onnx *onnx) {
  op_attention_onnx(onnx, 3, 0);
}

static void lower(struct stablehlo *hlo) {
  op_lower_attention(hlo, true);
}

static void lower_backward(struct stablehlo *hlo) {
  op_lower_attention_backward(hlo, true);
}

static const struct op_kind kind = {
    .name = "biased_attention",
    .lower.write = lower,
    .onnx.write = write_onnx,
    .class = OP_KERNEL,
    .template_name = "attention",
    .input_names = {"q", "k", "v", "bias"},
    .output_names = {"y", "lse"},
    .infer = infer,
    .gradient = gradient,
    .written_out = written_out,
    .layout.accepts = op_biased_accepts,
    .choice.variants = variants,
    .choice.what = "KV block size",
    .types.autocast = {AUTOCAST_BITS16, AUTOCAST_BITS16},
    .cost.flops = op_attention_flops,
    .sequence.along = along,
    .ranks.place = op_place_biased,
    .ranks.divided_dim = 1 + 1,
    .ranks.gathers = gathers,
    .ranks.over_positions = over_positions,
    .reference.evaluate = op_biased_reference,
};

static const struct op_kind kind_backward = {
    .name = "biased_attention_backward",
    .lower.write = lower_backward,
    .class = OP_KERNEL,
    .template_name = "attention",
    .input_names = {"dy", "q", "k", "v", "y", "lse", "bias"},
    .output_names = {"dq", "dk", "dv", "dbias", "bias_sums"},
    .infer = infer_backward,
    .layout.accepts = op_biased_accepts,
    .memory.accumulates = 1 | 2 | 4 | 8,
    .memory.workspace = 1u << 4,
    .choice.variants = variants_backward,
    .choice.what = "KV block size",
    .types.autocast = {AUTOCAST_BITS16, AUTOCAST_BITS16},
    .cost.flops = op_attention_backward_flops,
    .reference.evaluate = op_biased_backward_reference,
};

/* ---- Functions ---- */

static bool check_heads(struct builder *builder, struct shape q, struct shape k, struct shape v) {
  bool fits = q.rank == 4 && k.rank == 4 && shape_equal(k, v) && q.dim[0] == k.dim[0] && q.dim[3] == k.dim[3];
  if (fits && q.dim[1] % k.dim[1] == 0) return true;
  struct arena *arena = builder_arena(builder);
  builder_error(builder,
                "attention_bias: q %s, k %s and v %s must be [batch][heads][positions][d], q's heads a multiple of k's",
                shape_text(arena, q), shape_text(arena, k), shape_text(arena, v));
  return false;
}

/* The bias with all four dimensions. */
static struct value *aligned(struct builder *builder, struct value *bias, struct shape scores) {
  struct shape shape = {.rank = 4, .dim = {1, 1, 1, 1}};
  bool fits = bias->shape.rank <= 4;
  for (int i = 0; i < bias->shape.rank && fits; i++) {
    const int at = 4 - bias->shape.rank + i;
    shape.dim[at] = bias->shape.dim[i];
    fits = shape.dim[at] == 1 || shape.dim[at] == scores.dim[at];
  }
  if (fits) return op_reshape(builder, bias, shape);
  builder_error(builder, "attention_bias: the bias %s must broadcast to the scores' %s",
                shape_text(builder_arena(builder), bias->shape), shape_text(builder_arena(builder), scores));
  return NULL;
}

static struct value *biased(struct builder *builder, const struct argument *arguments, bool causal,
                            const double *scale) {
  struct value *q = op_tensor(arguments, 0), *k = op_tensor(arguments, 1), *v = op_tensor(arguments, 2);
  struct value *bias = op_tensor(arguments, 3);
  if (q == NULL || k == NULL || v == NULL || bias == NULL || !check_heads(builder, q->shape, k->shape, v->shape))
    return NULL;
  bias = aligned(builder, bias, shape_of(4, q->shape.dim[0], q->shape.dim[1], q->shape.dim[2], k->shape.dim[2]));
  struct attribute attributes[] = {
      attribute_int("causal", causal), attribute_int("window", 0),
      attribute_real("scale", scale != NULL ? *scale : 1 / sqrt((double)op_columns(q->shape)))};
  return builder_op(builder, "biased_attention", (struct value *[]){q, k, v, bias}, 4, attributes, 3);
}

/* attention_bias(q, k, v, bias) */
static struct value *build(struct builder *builder, const struct argument *arguments, int count) {
  (void)count;
  return biased(builder, arguments, false, NULL);
}

/* attention_bias_scaled(q, k, v, bias, mask, scale) */
static struct value *build_scaled(struct builder *builder, const struct argument *arguments, int count) {
  (void)count;
  return biased(builder, arguments, arguments[4].integer != 0, &arguments[5].real);
}

/* padding_bias(mask): 0 where the mask [batch][keys] is 1, the lowest float32 where it is 0: [batch][1][1][keys] */
static struct value *build_padding(struct builder *builder, const struct argument *arguments, int count) {
  (void)count;
  struct value *mask = op_tensor(arguments, 0);
  if (mask == NULL) return NULL;
  if (mask->shape.rank != 2) {
    builder_error(builder, "padding_bias: the mask %s must be [batch][keys]",
                  shape_text(builder_arena(builder), mask->shape));
    return NULL;
  }
  struct shape shape = shape_of(4, mask->shape.dim[0], (int64_t)1, (int64_t)1, mask->shape.dim[1]);
  return op_reshape(builder, op_scale(builder, op_shift(builder, mask, -1), 0x1.fffffep127), shape);
}

const struct op_file op_file_attention_bias = {
    .name = "attention_bias",
    .kinds = (const struct op_kind *const[]){&kind, &kind_backward, NULL},
    .functions = (const struct op_function[]){{"attention_bias", .build = build},
                                              {"attention_bias_scaled", .build = build_scaled},
                                              {"padding_bias", .build = build_padding},
                                              {0}},
};
