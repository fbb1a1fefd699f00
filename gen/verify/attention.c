/* accel/model.h's attention and rotary positions. */
#include <float.h>
#include <math.h>

#include "gen/verify/tape/elements.h"
#include "gen/verify/tape/tape.h"

/* Each of the heads of k or v for as many heads of q in a row. */
static tensor for_heads(tensor x, int64_t heads) {
  const int64_t own = x->dim[1], each = own > 0 ? heads / own : 0;
  if (each * own != heads) tape_refuse("attention: the heads of keys do not divide those of queries");
  if (each == 1) return x;
  const int64_t apart[] = {x->dim[0], own, 1, x->dim[2], x->dim[3]},
                wide[] = {x->dim[0], own, each, x->dim[2], x->dim[3]};
  const int64_t joined_heads[] = {x->dim[0], heads, x->dim[2], x->dim[3]};
  return reshaped(expand(reshaped(x, 5, apart), 5, wide, "attention"), 4, joined_heads);
}

/* Which keys a query sees: from `first` on, up to its own position or to the last. */
struct seen {
  bool causal;
  int window;    /* 0: all */
  tensor starts; /* NULL: from the first */
};

static bool sees(const struct seen *seen, int64_t sample, int64_t query, int64_t key, int64_t queries) {
  if (seen->causal && key > query) return false;
  if (seen->window > 0 && query - key >= seen->window) return false;
  return seen->starts == NULL || key >= (int64_t)seen->starts->values[sample * queries + query];
}

/* -infinity for the keys that a query does not see. */
static tensor hiding(tensor scores, const struct seen *seen) {
  tensor hidden = tape_like(scores);
  const int64_t heads = scores->dim[1], queries = scores->dim[2], keys = scores->dim[3];
  for (int64_t i = 0; i < hidden->count; i++) {
    const int64_t key = i % keys, query = i / keys % queries, sample = i / (keys * queries * heads);
    if (!sees(seen, sample, query, key, queries)) hidden->values[i] = -INFINITY;
  }
  return hidden;
}

/* softmax(cap tanh(scale q k^T / cap) + bias) v; cap 0: without it; bias NULL: none. */
static tensor attend(tensor q, tensor k, tensor v, tensor bias, struct seen seen, double factor, double cap) {
  if (q->rank != 4 || k->rank != 4 || v->rank != 4) tape_refuse("attention: operands have four axes");
  k = for_heads(k, q->dim[1]);
  v = for_heads(v, q->dim[1]);
  tensor scores = scale(matmul_transposed(q, k), factor);
  if (cap > 0) scores = scale(tanh_of(scale(scores, 1 / cap)), cap);
  if (bias != NULL) scores = add(scores, bias);
  if (seen.causal || seen.starts != NULL) scores = joined(scores, hiding(scores, &seen));
  return matmul(softmax(scores), v);
}

static double usual(tensor q) {
  return 1 / sqrt((double)columns_of(q));
}

tensor attention_scaled(tensor q, tensor k, tensor v, enum accel_mask mask, double factor) {
  return attend(q, k, v, NULL, (struct seen){.causal = mask == CAUSAL}, factor, 0);
}

tensor attention(tensor q, tensor k, tensor v, enum accel_mask mask) {
  return attention_scaled(q, k, v, mask, usual(q));
}

tensor attention_capped(tensor q, tensor k, tensor v, int window, double factor, double cap) {
  return attend(q, k, v, NULL, (struct seen){.causal = true, .window = window}, factor, cap);
}

tensor attention_window(tensor q, tensor k, tensor v, int window) {
  return attention_capped(q, k, v, window, usual(q), 0);
}

tensor attention_bias_scaled(tensor q, tensor k, tensor v, tensor bias, enum accel_mask mask, double factor) {
  return attend(q, k, v, bias, (struct seen){.causal = mask == CAUSAL}, factor, 0);
}

tensor attention_bias(tensor q, tensor k, tensor v, tensor bias) {
  return attention_bias_scaled(q, k, v, bias, FULL, usual(q));
}

tensor padding_bias(tensor mask) {
  tensor bias = tape_new(4, (const int64_t[]){mask->dim[0], 1, 1, mask->dim[1]});
  for (int64_t i = 0; i < mask->count; i++) bias->values[i] = mask->values[i] != 0 ? 0 : -(double)FLT_MAX;
  return bias;
}

tensor attention_documents(tensor q, tensor k, tensor v, tensor starts) {
  return attend(q, k, v, NULL, (struct seen){.causal = true, .starts = starts}, usual(q), 0);
}

/* ---- Rotary positions ---- */

/* Columns of x [..., d]: column j of the result is column from(j). */
static tensor columns_from(tensor x, int64_t count, int64_t first, int64_t step) {
  int64_t dim[MOST_AXES];
  for (int i = 0; i < x->rank; i++) dim[i] = i == x->rank - 1 ? count : x->dim[i];
  int64_t rows = rows_of(x), *places = tape_memory(rows * count, sizeof *places);
  for (int64_t i = 0; i < rows * count; i++) places[i] = i / count * columns_of(x) + first + i % count * step;
  return pick(x, x->rank, dim, places);
}

/* The other way: columns of zeros, of which some are x's. */
static tensor columns_to(tensor x, int64_t count, int64_t first, int64_t step) {
  int64_t dim[MOST_AXES];
  for (int i = 0; i < x->rank; i++) dim[i] = i == x->rank - 1 ? count : x->dim[i];
  int64_t rows = rows_of(x), *places = tape_memory(rows * count, sizeof *places);
  for (int64_t i = 0; i < rows * count; i++) {
    int64_t column = i % count - first;
    places[i] = column < 0 || column % step != 0 || column / step >= columns_of(x)
                    ? -1
                    : i / count * columns_of(x) + column / step;
  }
  return pick(x, x->rank, dim, places);
}

/* The pairs of columns (first, second), each of angle r turned by it. */
static tensor turned(tensor x, tensor cosine, tensor sine, int64_t second, int64_t step) {
  const int64_t angles = columns_of(cosine), columns = columns_of(x);
  tensor a = columns_from(x, angles, 0, step), b = columns_from(x, angles, second, step);
  tensor left = sub(mul(a, cosine), mul(b, sine)), right = add(mul(b, cosine), mul(a, sine));
  tensor y = joined(columns_to(left, columns, 0, step), columns_to(right, columns, second, step));
  if (columns > 2 * angles) {
    tensor rest = columns_from(x, columns - 2 * angles, 2 * angles, 1);
    y = joined(y, columns_to(rest, columns, 2 * angles, 1));
  }
  return y;
}

tensor rotary(tensor x, tensor cosine, tensor sine) {
  return turned(x, cosine, sine, columns_of(cosine), 1);
}

tensor rotary_interleaved(tensor x, tensor cosine, tensor sine) {
  return turned(x, cosine, sine, 1, 2);
}
