/* Formulas of kernels that are no chains of operations on elements, as the comments of model.h and papers write them.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gen/verify/kernels.h"

/* ---- Arrays by their names ---- */

/* An array; NULL: there is none of that name. */
static const double *given(const struct kernel_case *c, const char *name, int64_t *count) {
  const int i = kernel_array_of(c->kernel, name);
  if (count != NULL) *count = i < 0 ? 0 : c->kernel->arrays[i].count;
  return i < 0 ? NULL : c->in[i];
}

/* One that is written. */
static double *made(struct kernel_case *c, const char *name, int64_t *count) {
  const int i = kernel_array_of(c->kernel, name);
  if (count != NULL) *count = i < 0 ? 0 : c->kernel->arrays[i].count;
  return i < 0 ? NULL : c->out[i];
}

/* Whether the function has no other arrays than so many. */
static bool has_all(const struct kernel_case *c, int count) {
  return c->kernel->n_arrays == count;
}

static void says(struct kernel_case *c, const char *text) {
  snprintf(c->formula, sizeof c->formula, "%s", text);
  c->fits = true;
}

/* ---- Products ---- */

/* y [m][n] = a b, each of them or its transpose; a large one in some elements. */
static bool product(struct kernel_case *c, int variant) {
  int64_t A, B, Y;
  const double *a = given(c, "a", &A), *b = given(c, "b", &B);
  double *y = made(c, "y", &Y);
  if (variant >= 16) return false;
  if (a == NULL || b == NULL || y == NULL || !has_all(c, 3)) return true;
  const int64_t m = llround(sqrt((double)A * (double)Y / (double)B));
  if (m == 0 || A % m != 0 || Y % m != 0 || A / m * (Y / m) != B) return true;
  const int64_t k = A / m, n = Y / m;
  const bool adds = variant >= 8, ta = variant & 1, tb = variant >> 1 & 1, ty = variant >> 2 & 1;
  c->stride = 1 + m * n * k / 4000000;
  c->terms = k;
  for (int64_t i = 0; i < Y; i += c->stride) {
    const int64_t row = ty ? i % m : i / n, column = ty ? i / m : i % n;
    double sum = 0;
    for (int64_t j = 0; j < k; j++) sum += a[ta ? j * m + row : row * k + j] * b[tb ? column * k + j : j * n + column];
    y[i] = (adds ? given(c, "y", NULL)[i] : 0) + sum;
  }
  snprintf(c->formula, sizeof c->formula, "y%s %s a%s b%s, [%lld][%lld] x [%lld][%lld]", ty ? "^T" : "",
           adds ? "+=" : "=", ta ? "^T" : "", tb ? "^T" : "", (long long)m, (long long)k, (long long)k, (long long)n);
  c->fits = true;
  return true;
}

/* ---- Sums over axes ---- */

/* Of x as [outer][among][inner], where `inner` is 1 or the product of last extents. */
static bool sums(struct kernel_case *c, int variant) {
  int64_t X, Y, inner = 1;
  const bool adds = variant > c->n_dims + 1;
  const double *x = given(c, "x", &X);
  double *y = made(c, "y", &Y);
  if (variant >= 2 * (c->n_dims + 2)) return false;
  variant %= c->n_dims + 2;
  for (int i = 0; i < variant && i < c->n_dims; i++) inner *= c->dims[c->n_dims - 1 - i];
  if (variant == c->n_dims + 1) inner = Y;
  if (x == NULL || y == NULL || !has_all(c, 2) || X % Y != 0 || Y % inner != 0) return true;
  const int64_t among = X / Y;
  for (int64_t i = 0; i < Y; i++) y[i] = adds ? given(c, "y", NULL)[i] : 0;
  for (int64_t i = 0; i < X; i++) y[i / (inner * among) * inner + i % inner] += x[i];
  c->terms = among;
  snprintf(c->formula, sizeof c->formula, "y %s the sum of x [%lld][%lld][%lld] over the axis between",
           adds ? "+=" : "=", (long long)(Y / inner), (long long)among, (long long)inner);
  c->fits = true;
  return true;
}

/* ---- Embeddings ---- */

static bool embedding_rows(struct kernel_case *c, int variant) {
  int64_t W, Y, R;
  const double *weight = given(c, "weight", &W), *tokens = given(c, "tokens", &R);
  double *y = made(c, "y", &Y);
  if (variant > 0) return false;
  if (weight == NULL || tokens == NULL || y == NULL || !has_all(c, 3) || Y % R != 0) return true;
  const int64_t width = Y / R;
  for (int64_t i = 0; i < Y; i++) y[i] = weight[(int64_t)tokens[i / width] * width + i % width];
  says(c, "y[r] = weight[tokens[r]]");
  return true;
}

static bool embedding_sums(struct kernel_case *c, int variant) {
  int64_t W, Y, R;
  double *dweight = made(c, "dweight", &W);
  const double *before = given(c, "dweight", NULL), *dy = given(c, "dy", &Y), *tokens = given(c, "tokens", &R);
  if (variant > 1) return false;
  if (dweight == NULL || dy == NULL || tokens == NULL || !has_all(c, 3) || Y % R != 0) return true;
  const int64_t width = Y / R;
  for (int64_t i = 0; i < W; i++) dweight[i] = variant > 0 ? before[i] : 0;
  for (int64_t i = 0; i < Y; i++) dweight[(int64_t)tokens[i / width] * width + i % width] += dy[i];
  c->terms = 1 + Y / W;
  says(c, variant > 0 ? "dweight[tokens[r]] += dy[r]" : "dweight[tokens[r]] = the sum of dy[r]");
  return true;
}

/* ---- Norms ---- */

/* (x - mean) / sqrt(variance + eps) weight + bias, row by row; of rms_norm without mean and bias. */
static bool norm(struct kernel_case *c, bool centered, int variant) {
  int64_t X, C;
  const double *x = given(c, "x", &X), *weight = given(c, "weight", &C), *bias = given(c, "bias", NULL);
  double *y = made(c, "y", NULL), *mean = made(c, "mean", NULL), *rstd = made(c, "rstd", NULL);
  const int arrays = 3 + (bias != NULL) + (mean != NULL) + (rstd != NULL);
  if (variant >= c->n_constants) return false;
  if (x == NULL || weight == NULL || y == NULL || !has_all(c, arrays) || X % C != 0) return true;
  const double eps = c->constants[variant];
  for (int64_t r = 0; r < X / C; r++) {
    double middle = 0, square = 0;
    for (int64_t k = 0; k < C && centered; k++) middle += x[r * C + k] / (double)C;
    for (int64_t k = 0; k < C; k++) square += (x[r * C + k] - middle) * (x[r * C + k] - middle) / (double)C;
    middle = kernel_rounded(c, middle);
    const double by = kernel_rounded(c, 1 / sqrt(square + eps));
    if (mean != NULL) mean[r] = middle;
    if (rstd != NULL) rstd[r] = by;
    for (int64_t k = 0; k < C; k++)
      y[r * C + k] = (x[r * C + k] - middle) * by * weight[k] + (bias != NULL ? bias[k] : 0);
  }
  c->terms = C;
  snprintf(c->formula, sizeof c->formula, "y = %s rstd weight%s, rstd = 1 / sqrt(%s + %g)",
           centered ? "(x - mean)" : "x", bias != NULL ? " + bias" : "", centered ? "variance" : "avg(x^2)", eps);
  c->fits = true;
  return true;
}

static bool layer_norm_rows(struct kernel_case *c, int variant) {
  return norm(c, true, variant);
}

static bool rms_norm_rows(struct kernel_case *c, int variant) {
  return norm(c, false, variant);
}

/* With n = (x - mean) rstd and g = dy weight: dx = rstd (g - avg(g) - n avg(g n)); of rms_norm without mean and avg(g).
 * variant 1: the gradients of weight and bias are added to what is there. */
static bool norm_backward(struct kernel_case *c, bool centered, int variant) {
  int64_t X, C;
  const double *dy = given(c, "dy", NULL), *x = given(c, "x", &X), *weight = given(c, "weight", &C);
  const double *mean = given(c, "mean", NULL), *rstd = given(c, "rstd", NULL);
  const double *old_weight = given(c, "dweight", NULL), *old_bias = given(c, "dbias", NULL);
  double *dx = made(c, "dx", NULL), *dweight = made(c, "dweight", NULL), *dbias = made(c, "dbias", NULL);
  const int arrays = 5 + (mean != NULL) + (dweight != NULL) + (dbias != NULL);
  if (variant > 1) return false;
  if (dy == NULL || x == NULL || weight == NULL || rstd == NULL || dx == NULL || !has_all(c, arrays) || X % C != 0)
    return true;
  for (int64_t k = 0; k < C && dweight != NULL; k++) dweight[k] = variant > 0 ? old_weight[k] : 0;
  for (int64_t k = 0; k < C && dbias != NULL; k++) dbias[k] = variant > 0 ? old_bias[k] : 0;
  for (int64_t r = 0; r < X / C; r++) {
    const double *xr = x + r * C, *dyr = dy + r * C, middle = mean != NULL ? mean[r] : 0;
    double of_g = 0, of_gn = 0;
    for (int64_t k = 0; k < C; k++) {
      const double n = kernel_rounded(c, (xr[k] - middle) * rstd[r]), g = kernel_rounded(c, dyr[k] * weight[k]);
      of_g += centered ? g / (double)C : 0;
      of_gn += g * n / (double)C;
      if (dweight != NULL) dweight[k] += dyr[k] * n;
      if (dbias != NULL) dbias[k] += dyr[k];
    }
    for (int64_t k = 0; k < C; k++)
      dx[r * C + k] = rstd[r] * (dyr[k] * weight[k] - of_g - (xr[k] - middle) * rstd[r] * of_gn);
  }
  c->terms = C > X / C ? C : X / C;
  says(c, centered ? "dx = rstd (g - avg(g) - n avg(g n)), dweight and dbias the sums of dy n and dy"
                   : "dx = rstd (g - n avg(g n)), dweight the sum of dy n");
  return true;
}

static bool layer_norm_slopes(struct kernel_case *c, int variant) {
  return norm_backward(c, true, variant);
}

static bool rms_norm_slopes(struct kernel_case *c, int variant) {
  return norm_backward(c, false, variant);
}

/* ---- Softmax ---- */

/* The columns of a row: the last extent of the name. */
static int64_t columns(const struct kernel_case *c, int64_t count) {
  const int64_t last = c->n_dims > 0 ? c->dims[c->n_dims - 1] : 0;
  return last > 0 && count % last == 0 ? last : 0;
}

static double log_of_sum(const double *x, int64_t count) {
  double highest = -INFINITY, sum = 0;
  for (int64_t k = 0; k < count; k++) highest = fmax(highest, x[k]);
  for (int64_t k = 0; k < count; k++) sum += exp(x[k] - highest);
  return highest + log(sum);
}

static bool softmax_of(struct kernel_case *c, bool logs, int variant) {
  int64_t X, Y;
  const double *x = given(c, "x", &X);
  double *y = made(c, "y", &Y);
  const int64_t C = columns(c, X);
  if (variant > 0) return false;
  if (x == NULL || y == NULL || !has_all(c, 2) || C == 0 || X != Y) return true;
  for (int64_t r = 0; r < X / C; r++) {
    const double rest = kernel_rounded(c, log_of_sum(x + r * C, C));
    for (int64_t k = 0; k < C; k++) y[r * C + k] = logs ? x[r * C + k] - rest : exp(x[r * C + k] - rest);
  }
  c->terms = C;
  says(c, logs ? "y = x - ln of the sum of e^x, row by row" : "y = e^x over its sum, row by row");
  return true;
}

static bool softmax_rows(struct kernel_case *c, int variant) {
  return softmax_of(c, false, variant);
}

static bool log_softmax_rows(struct kernel_case *c, int variant) {
  return softmax_of(c, true, variant);
}

static bool softmax_slopes(struct kernel_case *c, int variant) {
  int64_t X;
  const double *y = given(c, "y", &X), *dy = given(c, "dy", NULL);
  double *dx = made(c, "dx", NULL);
  const int64_t C = columns(c, X);
  if (variant > 0) return false;
  if (y == NULL || dy == NULL || dx == NULL || !has_all(c, 3) || C == 0) return true;
  for (int64_t r = 0; r < X / C; r++) {
    double dot = 0;
    for (int64_t k = 0; k < C; k++) dot += y[r * C + k] * dy[r * C + k];
    for (int64_t k = 0; k < C; k++) dx[r * C + k] = y[r * C + k] * (dy[r * C + k] - dot);
  }
  c->terms = C;
  says(c, "dx = y (dy - the sum of dy y), row by row");
  return true;
}

/* ---- Cross-entropy ---- */

/* Variant 0: of the mean over the targets that are not -100; 1: of their sum. */
static bool cross_entropy_mean(struct kernel_case *c, int variant) {
  int64_t X, R;
  const double *logits = given(c, "logits", &X), *targets = given(c, "targets", &R);
  double *loss = made(c, "loss", NULL), *lse = made(c, "lse", NULL), *scale = made(c, "scale", NULL), total = 0,
         count = 0;
  const int arrays = 3 + (lse != NULL) + (scale != NULL);
  if (variant > 1) return false;
  if (logits == NULL || targets == NULL || loss == NULL || !has_all(c, arrays) || X % R != 0) return true;
  for (int64_t r = 0; r < R; r++) {
    const double rest = kernel_rounded(c, log_of_sum(logits + r * (X / R), X / R));
    if (lse != NULL) lse[r] = rest;
    if (targets[r] < 0) continue;
    total += rest - logits[r * (X / R) + (int64_t)targets[r]];
    count++;
  }
  loss[0] = variant == 0 ? total / count : total;
  if (scale != NULL) scale[0] = variant == 0 ? 1 / count : 1;
  c->terms = X;
  says(c, variant == 0 ? "loss = the mean of ln sum e^logits - logits[target] over the targets that are not -100"
                       : "loss = the sum of ln sum e^logits - logits[target] over the targets that are not -100");
  return true;
}

static bool cross_entropy_slopes(struct kernel_case *c, int variant) {
  int64_t X, R;
  const double *logits = given(c, "logits", &X), *targets = given(c, "targets", &R), *lse = given(c, "lse", NULL);
  const double *d_loss = given(c, "d_loss", NULL), *scale = given(c, "scale", NULL);
  double *dlogits = made(c, "dlogits", NULL);
  if (variant > 0) return false;
  if (logits == NULL || targets == NULL || lse == NULL || d_loss == NULL || scale == NULL || dlogits == NULL ||
      !has_all(c, 6) || X % R != 0)
    return true;
  const int64_t C = X / R;
  for (int64_t i = 0; i < X; i++) {
    const double target = targets[i / C], one = (double)(i % C) == target ? 1 : 0;
    dlogits[i] = target < 0 ? 0 : d_loss[0] * scale[0] * (exp(logits[i] - lse[i / C]) - one);
  }
  says(c, "dlogits = d_loss scale (e^(logits - lse) - 1 at the target), 0 where that is -100");
  return true;
}

/* ---- Constants ---- */

static bool constants_of(struct kernel_case *c, int variant) {
  int64_t Y;
  double *y = made(c, "y", &Y);
  if (variant >= c->n_constants) return false;
  if (y == NULL || !has_all(c, 1)) return true;
  for (int64_t i = 0; i < Y; i++) y[i] = c->constants[variant];
  snprintf(c->formula, sizeof c->formula, "y = %g", c->constants[variant]);
  c->fits = true;
  return true;
}

/* ---- Attention ---- */

enum { MOST_SCORES = 4000000 }; /* of a variant, times the width of a head */

/* An array of heads: of each batch and position so many numbers in a row, `row` apart; or, of `by_head`, of each batch
 * and head so many positions. */
struct heads {
  int64_t row, heads, positions, width;
  bool by_head;
};

static int64_t head_at(struct heads h, int64_t b, int64_t head, int64_t t) {
  return h.by_head ? ((b * h.heads + head) * h.positions + t) * h.width
                   : (b * h.positions + t) * h.row + head * h.width;
}

/* The shape of attention: batches, heads, positions and the width of a head, as the name has them. */
struct attending {
  int64_t batches, heads, positions, width;
  double scale;
  bool causal;
};

/* How an array of `count` numbers lies; false: it does not fit. */
static bool heads_of(const struct attending *a, int64_t count, int64_t heads, bool by_head, struct heads *h) {
  const int64_t rows = a->batches * a->positions, own = heads * a->width;
  *h = (struct heads){own, heads, a->positions, a->width, by_head};
  if (by_head || rows == 1) return count == rows * own;
  h->row = (count - own) / (rows - 1);
  return (count - own) % (rows - 1) == 0 && h->row >= own;
}

/* Variants: causal or not; queries, keys, values and the result by position or by head; the keys' heads as many as the
 * queries' or a part of them. */
static bool attending_of(struct kernel_case *c, int variant, struct attending *a, bool by_head[4], int64_t *keys) {
  if (c->n_dims != 4) return false;
  c->is_open = true;
  *a = (struct attending){c->dims[0],      c->dims[1], c->dims[2], c->dims[3], 1 / sqrt((double)c->dims[3]),
                          variant % 2 == 0};
  for (int i = 0; i < 4; i++) by_head[i] = variant >> (1 + i) & 1;
  *keys = a->heads >> (variant / 32);
  return *keys > 0 && a->heads % *keys == 0;
}

static double dot(const double *x, const double *y, int64_t count) {
  double sum = 0;
  for (int64_t i = 0; i < count; i++) sum += x[i] * y[i];
  return sum;
}

static void attend_row(const struct attending *a, const double *q, const double *k, const double *v,
                       struct heads of_keys, struct heads of_values, int64_t b, int64_t head, int64_t t, double *scores,
                       double *y, double *lse) {
  const int64_t most = a->causal ? t + 1 : a->positions;
  for (int64_t s = 0; s < most; s++) scores[s] = a->scale * dot(q, k + head_at(of_keys, b, head, s), a->width);
  *lse = log_of_sum(scores, most);
  for (int64_t d = 0; d < a->width; d++) y[d] = 0;
  for (int64_t s = 0; s < most; s++)
    for (int64_t d = 0; d < a->width; d++) y[d] += exp(scores[s] - *lse) * v[head_at(of_values, b, head, s) + d];
}

static bool attention_rows(struct kernel_case *c, int variant) {
  int64_t Q, K, V, Y, L;
  const double *q = given(c, "q", &Q), *k = given(c, "k", &K), *v = given(c, "v", &V);
  double *y = made(c, "y", &Y), *lse = made(c, "lse", &L);
  struct attending a;
  struct heads hq, hk, hv, hy;
  bool by_head[4];
  int64_t keys;
  if (!attending_of(c, variant, &a, by_head, &keys)) return false;
  if (q == NULL || k == NULL || v == NULL || y == NULL || lse == NULL || !has_all(c, 5)) return true;
  if (!heads_of(&a, Q, a.heads, by_head[0], &hq) || !heads_of(&a, K, keys, by_head[1], &hk) ||
      !heads_of(&a, V, keys, by_head[2], &hv) || !heads_of(&a, Y, a.heads, by_head[3], &hy) ||
      L != a.batches * a.heads * a.positions || Q * a.positions > MOST_SCORES)
    return true;
  double *scores = malloc((size_t)a.positions * sizeof *scores);
  const double *before = given(c, "y", NULL);
  memcpy(y, before, (size_t)Y * sizeof *y);
  for (int64_t i = 0; i < L && scores != NULL; i++) {
    const int64_t b = i / (a.heads * a.positions), head = i / a.positions % a.heads, t = i % a.positions;
    attend_row(&a, q + head_at(hq, b, head, t), k, v, hk, hv, b, head * keys / a.heads, t, scores,
               y + head_at(hy, b, head, t), &lse[i]);
  }
  free(scores);
  c->terms = a.positions;
  snprintf(c->formula, sizeof c->formula, "y = softmax(%g q k^T%s) v", a.scale, a.causal ? ", causal" : "");
  c->fits = true;
  return true;
}

/* The arrays of a backward. */
struct slopes {
  const double *dy, *q, *k, *v, *y, *lse;
  double *dq, *dk, *dv;
  struct heads hq, hk, hv, hy, hdq, hdk, hdv;
  int64_t keys;
};

static void attend_back(const struct attending *a, const struct slopes *s, int64_t i) {
  const int64_t b = i / (a->heads * a->positions), head = i / a->positions % a->heads, t = i % a->positions;
  const int64_t most = a->causal ? t + 1 : a->positions, key = head * s->keys / a->heads;
  const double *q = s->q + head_at(s->hq, b, head, t), *dy = s->dy + head_at(s->hy, b, head, t);
  const double along = dot(dy, s->y + head_at(s->hy, b, head, t), a->width);
  double *dq = s->dq + head_at(s->hdq, b, head, t);
  for (int64_t u = 0; u < most; u++) {
    const int64_t at = head_at(s->hk, b, key, u), to = head_at(s->hdk, b, key, u);
    const int64_t at_v = head_at(s->hv, b, key, u), to_v = head_at(s->hdv, b, key, u);
    const double p = exp(a->scale * dot(q, s->k + at, a->width) - s->lse[i]);
    const double ds = a->scale * p * (dot(dy, s->v + at_v, a->width) - along);
    for (int64_t d = 0; d < a->width; d++) {
      dq[d] += ds * s->k[at + d];
      s->dk[to + d] += ds * q[d];
      s->dv[to_v + d] += p * dy[d];
    }
  }
}

/* What a backward writes begins at 0, and the rest of these arrays stays as it was. */
static void clear_heads(const struct attending *a, struct heads h, double *x) {
  for (int64_t b = 0; b < a->batches; b++)
    for (int64_t head = 0; head < h.heads; head++)
      for (int64_t t = 0; t < a->positions; t++) memset(x + head_at(h, b, head, t), 0, (size_t)a->width * sizeof *x);
}

static bool attention_slopes(struct kernel_case *c, int variant) {
  int64_t Q, K, V, Y, L, dQ, dK, dV;
  struct slopes s = {.dy = given(c, "dy", &Y), .q = given(c, "q", &Q), .k = given(c, "k", &K), .v = given(c, "v", &V)};
  s.y = given(c, "y", NULL);
  s.lse = given(c, "lse", &L);
  s.dq = made(c, "dq", &dQ);
  s.dk = made(c, "dk", &dK);
  s.dv = made(c, "dv", &dV);
  struct attending a;
  bool by_head[4];
  if (!attending_of(c, variant, &a, by_head, &s.keys)) return false;
  if (s.dy == NULL || s.q == NULL || s.k == NULL || s.v == NULL || s.y == NULL || s.lse == NULL || s.dq == NULL ||
      s.dk == NULL || s.dv == NULL || !has_all(c, 9))
    return true;
  if (!heads_of(&a, Q, a.heads, by_head[0], &s.hq) || !heads_of(&a, K, s.keys, by_head[1], &s.hk) ||
      !heads_of(&a, V, s.keys, by_head[2], &s.hv) || !heads_of(&a, Y, a.heads, by_head[3], &s.hy) ||
      !heads_of(&a, dQ, a.heads, by_head[0], &s.hdq) || !heads_of(&a, dK, s.keys, by_head[1], &s.hdk) ||
      !heads_of(&a, dV, s.keys, by_head[2], &s.hdv) || L != a.batches * a.heads * a.positions ||
      Q * a.positions > MOST_SCORES)
    return true;
  memcpy(s.dq, given(c, "dq", NULL), (size_t)dQ * sizeof(double));
  memcpy(s.dk, given(c, "dk", NULL), (size_t)dK * sizeof(double));
  memcpy(s.dv, given(c, "dv", NULL), (size_t)dV * sizeof(double));
  clear_heads(&a, s.hdq, s.dq);
  clear_heads(&a, s.hdk, s.dk);
  clear_heads(&a, s.hdv, s.dv);
  for (int64_t i = 0; i < L; i++) attend_back(&a, &s, i);
  c->terms = a.positions;
  snprintf(c->formula, sizeof c->formula, "dq = ds k, dk = ds^T q, dv = p^T dy, ds = %g p (dy v^T - rowsum(dy y))%s",
           a.scale, a.causal ? ", causal" : "");
  c->fits = true;
  return true;
}

static const struct {
  const char *stem;
  kernel_formula *formula;
} formulas[] = {
    {"matmul", product},
    {"matmul_nt", product},
    {"matmul_tn", product},
    {"matmul_add", product},
    {"matmul_nt_add", product},
    {"matmul_tn_add", product},
    {"sum", sums},
    {"sum_add", sums},
    {"embedding", embedding_rows},
    {"embedding_backward", embedding_sums},
    {"embedding_backward_add", embedding_sums},
    {"layer_norm", layer_norm_rows},
    {"layer_norm_backward", layer_norm_slopes},
    {"layer_norm_backward_add", layer_norm_slopes},
    {"rms_norm", rms_norm_rows},
    {"rms_norm_backward", rms_norm_slopes},
    {"rms_norm_backward_add", rms_norm_slopes},
    {"softmax", softmax_rows},
    {"log_softmax", log_softmax_rows},
    {"softmax_backward", softmax_slopes},
    {"constant", constants_of},
    {"attention", attention_rows},
    {"attention_backward", attention_slopes},
    {"cross_entropy", cross_entropy_mean},
    {"cross_entropy_backward", cross_entropy_slopes},
};

kernel_formula *kernel_formula_of(const char *stem) {
  for (size_t i = 0; i < sizeof formulas / sizeof *formulas; i++)
    if (strcmp(formulas[i].stem, stem) == 0) return formulas[i].formula;
  return NULL;
}
