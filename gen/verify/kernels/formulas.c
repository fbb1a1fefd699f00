/* Formulas of kernels that are no chains of operations on elements, as the comments of model.h and papers write them.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gen/verify/kernels/case.h"

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
  if (variant >= c->known->n_constants) return false;
  if (x == NULL || weight == NULL || y == NULL || !has_all(c, arrays) || X % C != 0) return true;
  const double eps = c->known->constants[variant];
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

double kernel_log_of_sum(const double *x, int64_t count) {
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
    const double rest = kernel_rounded(c, kernel_log_of_sum(x + r * C, C));
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
    const double rest = kernel_rounded(c, kernel_log_of_sum(logits + r * (X / R), X / R));
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
  if (variant >= c->known->n_constants) return false;
  if (y == NULL || !has_all(c, 1)) return true;
  for (int64_t i = 0; i < Y; i++) y[i] = c->known->constants[variant];
  snprintf(c->formula, sizeof c->formula, "y = %g", c->known->constants[variant]);
  c->fits = true;
  return true;
}

/* ---- Tables ---- */

/* y = numbers that the model has in its C: those of a table that the reading was given. */
static bool table_of_model(struct kernel_case *c, int variant) {
  int64_t Y;
  double *y = made(c, "y", &Y);
  const struct known_table *table = c->known->tables;
  for (int i = 0; i < variant && table != NULL; i++) table = table->next;
  if (table == NULL) return false;
  if (y == NULL || !has_all(c, 1) || table->count != Y) return true;
  memcpy(y, table->numbers, (size_t)Y * sizeof *y);
  snprintf(c->formula, sizeof c->formula, "y = table %d of the model, of %lld numbers", variant + 1, (long long)Y);
  c->fits = true;
  return true;
}

static bool counts(struct kernel_case *c, int variant) {
  int64_t Y;
  double *y = made(c, "y", &Y);
  if (variant > 0) return false;
  if (y == NULL || !has_all(c, 1)) return true;
  for (int64_t i = 0; i < Y; i++) y[i] = (double)i;
  says(c, "y = 0, 1, 2, ...");
  return true;
}

const struct kernel_named_formula kernel_formulas[] = {
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
    {"table", table_of_model},
    {"arange", counts},
    {"cross_entropy", cross_entropy_mean},
    {"cross_entropy_backward", cross_entropy_slopes},
    {NULL, NULL},
};
