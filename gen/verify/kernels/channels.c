/* Formulas of norms over channels of images, and of the gradient of a slice. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "gen/verify/kernels/case.h"

/* Images x [batch][channels][positions], whose elements are in sets: each has one mean. Of a batch norm a set is a
 * channel of all samples, of a group norm some channels of one. */
struct sets {
  int64_t count, channels, positions, each; /* each: elements of a set */
  bool of_batch;
  int64_t in_group; /* channels of a set */
};

static int64_t channel_of(const struct sets *s, int64_t i) {
  return i / s->positions % s->channels;
}

static int64_t set_of(const struct sets *s, int64_t i) {
  return s->of_batch ? channel_of(s, i) : i / (s->positions * s->in_group);
}

/* How they lie, by the numbers of elements, of channels and of means; false: they do not fit. */
static bool sets_of(const struct kernel_case *c, bool of_batch, int64_t elements, int64_t channels, int64_t means,
                    struct sets *s) {
  const int64_t batch = c->n_dims > 0 ? c->dims[0] : 0;
  if (batch == 0 || elements % (batch * channels) != 0 || elements % means != 0) return false;
  *s = (struct sets){means, channels, elements / (batch * channels), elements / means, of_batch, channels};
  if (of_batch) return means == channels;
  if (means % batch != 0 || channels % (means / batch) != 0) return false;
  s->in_group = channels / (means / batch);
  return true;
}

/* (x - mean) / sqrt(variance + eps) weight + bias. */
static bool group_norm_images(struct kernel_case *c, int variant) {
  int64_t X, C, M;
  const double *x = given(c, "x", &X), *weight = given(c, "weight", &C), *bias = given(c, "bias", NULL);
  double *y = made(c, "y", NULL), *mean = made(c, "mean", &M), *rstd = made(c, "rstd", NULL);
  struct sets s;
  if (variant >= c->known->n_constants) return false;
  if (x == NULL || weight == NULL || bias == NULL || y == NULL || mean == NULL || rstd == NULL || !has_all(c, 6) ||
      !sets_of(c, false, X, C, M, &s))
    return true;
  const double eps = c->known->constants[variant];
  memset(mean, 0, (size_t)M * sizeof *mean);
  memset(rstd, 0, (size_t)M * sizeof *rstd);
  for (int64_t i = 0; i < X; i++) mean[set_of(&s, i)] += x[i] / (double)s.each;
  for (int64_t k = 0; k < M; k++) mean[k] = kernel_rounded(c, mean[k]);
  for (int64_t i = 0; i < X; i++) rstd[set_of(&s, i)] += pow(x[i] - mean[set_of(&s, i)], 2) / (double)s.each;
  for (int64_t k = 0; k < M; k++) rstd[k] = kernel_rounded(c, 1 / sqrt(rstd[k] + eps));
  for (int64_t i = 0; i < X; i++) {
    const int64_t k = set_of(&s, i), channel = channel_of(&s, i);
    y[i] = (x[i] - mean[k]) * rstd[k] * weight[channel] + bias[channel];
  }
  c->terms = s.each;
  snprintf(c->formula, sizeof c->formula,
           "y = (x - mean) rstd weight + bias, rstd = 1 / sqrt(variance + %g), of groups of %lld", eps,
           (long long)s.in_group);
  c->fits = true;
  return true;
}

/* The arrays of a backward. */
struct channel_slopes {
  const double *dy, *x, *weight, *mean, *rstd;
  double *dx, *dweight, *dbias;
};

/* With n = (x - mean) rstd and g = dy weight: dx = rstd (g - avg(g) - n avg(g n)), averages over a set. */
static void slope_channels(const struct kernel_case *c, const struct sets *s, const struct channel_slopes *a,
                           int64_t elements, double *of_g, double *of_gn) {
  for (int64_t i = 0; i < elements; i++) {
    const int64_t k = set_of(s, i), channel = channel_of(s, i);
    const double n = kernel_rounded(c, (a->x[i] - a->mean[k]) * a->rstd[k]);
    const double g = kernel_rounded(c, a->dy[i] * a->weight[channel]);
    of_g[k] += g / (double)s->each;
    of_gn[k] += g * n / (double)s->each;
    a->dweight[channel] += a->dy[i] * n;
    a->dbias[channel] += a->dy[i];
  }
  for (int64_t i = 0; i < elements; i++) {
    const int64_t k = set_of(s, i);
    const double n = (a->x[i] - a->mean[k]) * a->rstd[k];
    a->dx[i] = a->rstd[k] * (a->dy[i] * a->weight[channel_of(s, i)] - of_g[k] - n * of_gn[k]);
  }
}

/* Variant 1: the gradients of weight and bias are added to what is there. */
static bool channel_norm_slopes(struct kernel_case *c, bool of_batch, int variant) {
  int64_t X, C, M;
  struct channel_slopes a = {.dy = given(c, "dy", NULL), .x = given(c, "x", &X), .weight = given(c, "weight", &C)};
  struct sets s;
  a.mean = given(c, "mean", &M);
  a.rstd = given(c, "rstd", NULL);
  a.dx = made(c, "dx", NULL);
  a.dweight = made(c, "dweight", NULL);
  a.dbias = made(c, "dbias", NULL);
  if (variant > 1) return false;
  if (a.dy == NULL || a.x == NULL || a.weight == NULL || a.mean == NULL || a.rstd == NULL || a.dx == NULL ||
      a.dweight == NULL || a.dbias == NULL || !has_all(c, 8) || !sets_of(c, of_batch, X, C, M, &s))
    return true;
  double *averages = calloc((size_t)M * 2 + 1, sizeof *averages);
  if (averages == NULL) return true;
  for (int64_t k = 0; k < C; k++) {
    a.dweight[k] = variant > 0 ? given(c, "dweight", NULL)[k] : 0;
    a.dbias[k] = variant > 0 ? given(c, "dbias", NULL)[k] : 0;
  }
  slope_channels(c, &s, &a, X, averages, averages + M);
  free(averages);
  c->terms = s.each > X / C ? s.each : X / C;
  says(c, of_batch ? "dx = rstd (g - avg(g) - n avg(g n)) by channels, dweight and dbias the sums of dy n and dy"
                   : "dx = rstd (g - avg(g) - n avg(g n)) by groups, dweight and dbias the sums of dy n and dy");
  return true;
}

static bool group_norm_slopes(struct kernel_case *c, int variant) {
  return channel_norm_slopes(c, false, variant);
}

static bool batch_norm_slopes(struct kernel_case *c, int variant) {
  return channel_norm_slopes(c, true, variant);
}

/* ---- Slices ---- */

/* Where along the axis the numbers of dy begin in dx: found by those of the first run. */
static int64_t start_of(const struct kernel_case *c, int64_t most, int64_t block, int64_t inner) {
  const int to = kernel_array_of(c->kernel, "dx"), from = kernel_array_of(c->kernel, "dy");
  const float *dx = c->rounds->after[to], *dy = c->rounds->before[from];
  for (int64_t start = 0; start <= most; start++)
    if (memcmp(dx + start * inner, dy, (size_t)block * sizeof *dy) == 0) return start;
  return 0;
}

/* dx [outer][extent][inner] = dy [outer][own][inner] from `start` on along the axis, 0 elsewhere; variant: the axis. */
static bool slice_slopes(struct kernel_case *c, int variant) {
  int64_t X, Y, outer = 1, inner = 1;
  const double *dy = given(c, "dy", &Y);
  double *dx = made(c, "dx", &X);
  if (variant >= c->n_dims) return false;
  for (int i = 0; i < variant; i++) outer *= c->dims[i];
  for (int i = variant + 1; i < c->n_dims; i++) inner *= c->dims[i];
  const int64_t own = c->dims[variant], extent = X / (outer * inner);
  if (dy == NULL || dx == NULL || !has_all(c, 2) || outer * own * inner != Y || outer * extent * inner != X ||
      extent < own)
    return true;
  const int64_t start = start_of(c, extent - own, own * inner, inner);
  c->is_open = true;
  for (int64_t i = 0; i < X; i++) {
    const int64_t at = i / inner % extent - start;
    dx[i] = at < 0 || at >= own ? 0 : dy[(i / (inner * extent) * own + at) * inner + i % inner];
  }
  snprintf(c->formula, sizeof c->formula, "dx = dy in positions %lld to %lld of axis %d, 0 elsewhere", (long long)start,
           (long long)(start + own - 1), variant);
  c->fits = true;
  return true;
}

const struct kernel_named_formula kernel_channel_formulas[] = {
    {"group_norm", group_norm_images},
    {"group_norm_backward", group_norm_slopes},
    {"group_norm_backward_add", group_norm_slopes},
    {"batch_norm_backward", batch_norm_slopes},
    {"batch_norm_backward_add", batch_norm_slopes},
    {"slice_backward", slice_slopes},
    {NULL, NULL},
};
