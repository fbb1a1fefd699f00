/* Causal attention (gen/ops/attention.c) of queries at the positions at[0], at[0] + 1, … of a sequence whose keys and
 * values at earlier positions are in the KV cache, k_cache and v_cache [batch][heads][positions][columns]: those of the
 * new positions, k and v, are appended to it, so that next_k and next_v are the cache with them. */
#include <math.h>
#include <string.h>

#include "gen/ops/support/lowered.h"
#include "gen/ops/support/support.h"

static bool check_cache(struct arena *arena, const struct node *node, int index, const char **error) {
  struct shape k = node->inputs[1]->shape, cache = node->inputs[index]->shape;
  if (!op_check_dtype(arena, node, index, DTYPE_FLOAT32, error)) return false;
  return op_check_shape(arena, node, index, op_with_extent(k, 2, cache.rank > 2 ? cache.dim[2] : 0),
                        "like k but for the positions", error);
}

static int infer(struct arena *arena, const struct node *node, struct shape *shapes, enum dtype *dtypes,
                 const char **error) {
  struct shape q = node->inputs[0]->shape, k = node->inputs[1]->shape;
  if (!op_check_same_float(arena, node, 3, error)) return 0;
  if (q.rank != 4 || k.rank != 4 || q.dim[1] % k.dim[1] != 0 || q.dim[2] != k.dim[2])
    return op_fail(arena, node, error, "%s and %s must be [batch][heads][positions][columns] of the same positions",
                   op_operand_text(arena, node, 0), op_operand_text(arena, node, 1));
  if (!op_check_shape(arena, node, 2, k, "like k", error)) return 0;
  if (!check_cache(arena, node, 3, error) || !check_cache(arena, node, 4, error)) return 0;
  if (!op_check_at(arena, node, 5, error)) return 0;
  shapes[0] = q;
  dtypes[0] = node->inputs[0]->dtype;
  for (int i = 1; i < 3; i++) {
    shapes[i] = node->inputs[2 + i]->shape;
    dtypes[i] = DTYPE_FLOAT32;
  }
  return 3;
}

static void append(const double *x, double *cache, struct op_block from, struct op_block to, int64_t first) {
  for (int64_t o = 0; o < from.outer; o++)
    memcpy(cache + (o * to.extent + first) * to.inner, x + o * from.extent * from.inner,
           (size_t)(from.extent * from.inner) * sizeof *x);
}

/* One query among the keys [begin, end) of its head. */
static void attend(const double *q, const double *keys, const double *values, double *y, int64_t begin, int64_t end,
                   int64_t columns, const struct node *node) {
  const double scale = node_real(node, "scale"), cap = node_real(node, "cap");
  double highest = -INFINITY, sum = 0;
  for (int pass = 0; pass < 2; pass++)
    for (int64_t s = begin; s < end; s++) {
      double score = 0;
      for (int64_t c = 0; c < columns; c++) score += scale * q[c] * keys[s * columns + c];
      if (cap > 0) score = cap * tanh(score / cap);
      if (pass == 0) {
        highest = fmax(highest, score);
        continue;
      }
      double p = exp(score - highest);
      sum += p;
      for (int64_t c = 0; c < columns; c++) y[c] += p * values[s * columns + c];
    }
  for (int64_t c = 0; c < columns; c++) y[c] /= sum;
}

static void reference(const struct node *node, const double *const *inputs, double *const *outputs) {
  struct shape q = node->inputs[0]->shape, k = node->inputs[1]->shape;
  struct op_block new = op_block(k, 2), all = op_block(node->inputs[3]->shape, 2);
  int64_t first = (int64_t)inputs[5][0], window = node_int(node, "window"), group = q.dim[1] / k.dim[1];
  for (int i = 0; i < 2; i++) {
    memcpy(outputs[1 + i], inputs[3 + i], (size_t)shape_count(node->inputs[3]->shape) * sizeof(double));
    append(inputs[1 + i], outputs[1 + i], new, all, first);
  }
  memset(outputs[0], 0, (size_t)shape_count(q) * sizeof(double));
  for (int64_t h = 0; h < q.dim[0] * q.dim[1]; h++)
    for (int64_t t = 0; t < q.dim[2]; t++) {
      int64_t row = (h * q.dim[2] + t) * q.dim[3], end = first + t + 1, head = h / group * all.extent * all.inner;
      int64_t begin = window > 0 && end > window ? end - window : 0;
      attend(inputs[0] + row, outputs[1] + head, outputs[2] + head, outputs[0] + row, begin, end, q.dim[3], node);
    }
}

/* Rows of what is new may be anywhere; the columns of a row are together. */
static bool accepts(const struct node *node, bool output, int index, const int64_t *strides) {
  struct shape shape = output ? node->outputs[index]->shape : node->inputs[index]->shape;
  if (output ? index > 0 : index > 2) return op_is_dense(shape, strides);
  for (int i = 0; i < 3; i++)
    if (strides[i] < 0) return false;
  return strides[3] == 1 || shape.dim[3] == 1;
}

/* Two matmuls of each query with half of the positions. */
static double flops(const struct node *node) {
  double keys = (double)node->inputs[3]->shape.dim[2] / 2, window = (double)node_int(node, "window");
  return 4.0 * (double)shape_count(node->inputs[0]->shape) * (window > 0 && window < keys ? window : keys);
}

/* Queries of the heads that share keys, as rows of one matrix: [batch][heads of k][rows][columns]. */
static struct hlo lower_grouped(struct stablehlo *hlo, struct hlo x, int64_t shared) {
  const struct shape s = x.shape;
  return hlo_reshape(hlo, x, shape_of(4, s.dim[0], shared, s.dim[1] / shared * s.dim[2], s.dim[3]));
}

/* The scores [batch][heads][queries][positions] of keys up to a query's own position, `at` being the first one's; of
 * others -infinity. */
static struct hlo lower_scores(struct stablehlo *hlo, struct hlo q, struct hlo keys, struct hlo at) {
  const struct node *node = hlo_node(hlo);
  const double scale = node_real(node, "scale"), cap = node_real(node, "cap"),
               window = (double)node_int(node, "window");
  const struct shape shape = shape_of(4, q.shape.dim[0], q.shape.dim[1], q.shape.dim[2], keys.shape.dim[2]);
  const struct shape square = shape_of(2, shape.dim[2], shape.dim[3]);
  const struct hlo products = hlo_dot(hlo, lower_grouped(hlo, q, keys.shape.dim[1]), keys, 2, 3, 3);
  struct hlo scores = hlo_mul(hlo, hlo_reshape(hlo, products, shape), hlo_number(cap > 0 ? scale / cap : scale));
  if (cap > 0) scores = hlo_mul(hlo, hlo_unary(hlo, "tanh", scores), hlo_number(cap));
  const struct hlo query = hlo_add(hlo, hlo_iota(hlo, square, 0, HLO_I32), at), key = hlo_iota(hlo, square, 1, HLO_I32);
  struct hlo seen = hlo_compare(hlo, "LE", key, query);
  if (window > 0)
    seen = hlo_binary(hlo, "and", seen, hlo_compare(hlo, "GT", key, hlo_sub(hlo, query, hlo_number(window))));
  return hlo_select(hlo, seen, scores, hlo_number(-INFINITY));
}

static void lower(struct stablehlo *hlo) {
  const struct hlo q = hlo_input(hlo, 0), at = op_lower_number(hlo, 5);
  struct hlo caches[2];
  for (int i = 0; i < 2; i++) {
    caches[i] = hlo_put_at(hlo, hlo_input(hlo, 3 + i), hlo_input(hlo, 1 + i), 2, at);
    hlo_result(hlo, 1 + i, caches[i]);
  }
  const struct hlo scores = lower_scores(hlo, q, caches[0], at);
  const struct hlo above = hlo_sub(hlo, scores, hlo_reduce_rows(hlo, "maximum", scores));
  const struct hlo powers = hlo_unary(hlo, "exponential", above);
  const struct hlo weights = hlo_div(hlo, powers, hlo_reduce_rows(hlo, "add", powers));
  hlo_result(hlo, 0, hlo_dot(hlo, lower_grouped(hlo, weights, caches[0].shape.dim[1]), caches[1], 2, 3, 2));
}

static const struct op_kind kind = {
    .name = "attention_cached",
    .lower.write = lower,
    .class = OP_KERNEL,
    .input_names = {"q", "k", "v", "k_cache", "v_cache", "at"},
    .output_names = {"y", "next_k", "next_v"},
    .infer = infer,
    .layout.accepts = accepts,
    .memory.assigns = {0, 4, 5},
    .types.autocast = {AUTOCAST_BITS16, AUTOCAST_BITS16},
    .cost.flops = flops,
    .reference.evaluate = reference,
};

const struct op_file op_file_attention_cached = {
    .name = "attention_cached",
    .kinds = (const struct op_kind *const[]){&kind, NULL},
};
