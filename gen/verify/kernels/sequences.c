/* Formulas of scans and running sums, and of the largest of a row. */
#include <math.h>
#include <stdlib.h>

#include "gen/verify/kernels/case.h"

/* ---- Mamba's scan (Gu, Dao, arXiv:2312.00752) ---- */

/* u and delta [batches][steps][channels], a [channels][states], b and c [batches][steps][states]. */
struct scan {
  int64_t batches, steps, channels, states;
  const double *u, *delta, *a, *b, *c;
};

static bool scan_of(const struct kernel_case *c, struct scan *s) {
  int64_t U, D, A, B, C;
  if (c->n_dims != 3) return false;
  *s =
      (struct scan){c->dims[0],        c->dims[1],        c->dims[2],       0, given(c, "u", &U), given(c, "delta", &D),
                    given(c, "a", &A), given(c, "b", &B), given(c, "c", &C)};
  const int64_t rows = s->batches * s->steps;
  s->states = A / s->channels;
  return U == rows * s->channels && D == U && A == s->channels * s->states && B == rows * s->states && C == B;
}

/* h = e^(delta a) h + delta b u; y = the sum of c h. */
static bool scan(struct kernel_case *c, int variant) {
  struct scan s;
  int64_t Y, H;
  double *y = made(c, "y", &Y), *states = made(c, "states", &H);
  if (variant > 0) return false;
  if (!scan_of(c, &s) || y == NULL || states == NULL || !has_all(c, 7)) return true;
  const int64_t rows = s.batches * s.steps, N = s.states;
  if (Y != rows * s.channels || H != Y * N) return true;
  for (int64_t i = 0; i < Y; i++) {
    const int64_t row = i / s.channels, d = i % s.channels;
    const double *before = row % s.steps > 0 ? states + (i - s.channels) * N : NULL;
    y[i] = 0;
    for (int64_t n = 0; n < N; n++) {
      const double kept = before != NULL ? exp(s.delta[i] * s.a[d * N + n]) * before[n] : 0;
      states[i * N + n] = kernel_rounded(c, kept + s.delta[i] * s.b[row * N + n] * s.u[i]);
      y[i] += s.c[row * N + n] * states[i * N + n];
    }
  }
  c->terms = s.steps + N;
  says(c, "h = e^(delta a) h + delta b u, y = the sum of c h");
  return true;
}

/* What a backward of a scan writes. */
struct scan_slopes {
  double *du, *ddelta, *da, *db, *dc;
};

/* Channel d of sample `batch`, from the last step back, with the gradient of h in `carried`. */
static void scan_back(const struct scan *s, const struct scan_slopes *to, const double *dy, const double *states,
                      int64_t batch, int64_t d, double *carried) {
  const int64_t N = s->states;
  for (int64_t n = 0; n < N; n++) carried[n] = 0;
  for (int64_t t = s->steps - 1; t >= 0; t--) {
    const int64_t row = batch * s->steps + t, i = row * s->channels + d;
    to->du[i] = to->ddelta[i] = 0;
    for (int64_t n = 0; n < N; n++) {
      const double fading = exp(s->delta[i] * s->a[d * N + n]), b = s->b[row * N + n];
      const double before = t > 0 ? states[(i - s->channels) * N + n] : 0;
      const double slope = carried[n] + dy[i] * s->c[row * N + n];
      to->dc[row * N + n] += dy[i] * states[i * N + n];
      to->db[row * N + n] += slope * s->delta[i] * s->u[i];
      to->du[i] += slope * s->delta[i] * b;
      to->ddelta[i] += slope * (s->a[d * N + n] * fading * before + b * s->u[i]);
      to->da[(batch * s->channels + d) * N + n] += slope * s->delta[i] * fading * before;
      carried[n] = slope * fading;
    }
  }
}

/* da of each sample by itself. */
static bool scan_slopes(struct kernel_case *c, int variant) {
  struct scan s;
  int64_t U, D, A, B, C, Y, H;
  const double *dy = given(c, "dy", &Y), *states = given(c, "states", &H);
  const struct scan_slopes to = {made(c, "du", &U), made(c, "ddelta", &D), made(c, "da", &A), made(c, "db", &B),
                                 made(c, "dc", &C)};
  if (variant > 0) return false;
  if (!scan_of(c, &s) || dy == NULL || states == NULL || to.du == NULL || to.ddelta == NULL || to.da == NULL ||
      to.db == NULL || to.dc == NULL || !has_all(c, 12))
    return true;
  const int64_t rows = s.batches * s.steps, N = s.states;
  double *carried = malloc((size_t)(N + 1) * sizeof *carried);
  if (carried == NULL || U != rows * s.channels || D != U || Y != U || H != U * N || B != rows * N || C != B ||
      A != s.batches * s.channels * N) {
    free(carried);
    return true;
  }
  for (int64_t i = 0; i < B; i++) to.db[i] = to.dc[i] = 0;
  for (int64_t i = 0; i < A; i++) to.da[i] = 0;
  for (int64_t i = 0; i < s.batches * s.channels; i++)
    scan_back(&s, &to, dy, states, i / s.channels, i % s.channels, carried);
  free(carried);
  c->terms = s.steps * N + s.channels;
  says(c, "the gradients of h = e^(delta a) h + delta b u, y = the sum of c h");
  return true;
}

/* ---- Running sums ---- */

/* Variants: the axis; from its first position on or from its last one back. */
static bool running_sums(struct kernel_case *c, int variant) {
  int64_t X, Y, inner = 1;
  const double *x = given(c, "x", &X);
  double *y = made(c, "y", &Y);
  const int axis = variant / 2;
  const bool back = variant % 2;
  if (axis >= c->n_dims) return false;
  for (int i = axis + 1; i < c->n_dims; i++) inner *= c->dims[i];
  const int64_t extent = c->dims[axis];
  if (x == NULL || y == NULL || !has_all(c, 2) || X != Y || Y % (inner * extent) != 0) return true;
  c->is_open = true;
  for (int64_t k = 0; k < Y; k++) {
    const int64_t i = back ? Y - 1 - k : k, at = i / inner % extent;
    const bool first = at == (back ? extent - 1 : 0);
    y[i] = x[i] + (first ? 0 : y[back ? i + inner : i - inner]);
  }
  c->terms = extent;
  snprintf(c->formula, sizeof c->formula, "y = the sum of x up to each position of axis %d%s", axis,
           back ? ", from the last one back" : "");
  c->fits = true;
  return true;
}

/* ---- The largest of a row ---- */

/* How many of a row are before element `at`: those that are larger, and equal ones at lower places. */
static int64_t rank_of(const double *row, int64_t columns, int64_t at) {
  int64_t before = 0;
  for (int64_t k = 0; k < columns; k++) before += row[k] > row[at] || (row[k] == row[at] && k < at);
  return before;
}

/* Variant: one less than how many are marked. */
static bool largest_mask(struct kernel_case *c, int variant) {
  int64_t X, Y;
  const double *x = given(c, "x", &X);
  double *y = made(c, "y", &Y);
  const int64_t columns = c->n_dims > 0 ? c->dims[c->n_dims - 1] : 0;
  if (variant >= columns) return false;
  if (x == NULL || y == NULL || !has_all(c, 2) || X != Y || X % columns != 0) return true;
  c->is_open = c->selects = true;
  for (int64_t i = 0; i < X; i++) y[i] = rank_of(x + i / columns * columns, columns, i % columns) <= variant ? 1 : 0;
  snprintf(c->formula, sizeof c->formula, "y = 1 in the %d largest of a row of x, else 0", variant + 1);
  c->fits = true;
  return true;
}

static bool largest_places(struct kernel_case *c, int variant) {
  int64_t X, Y;
  const double *x = given(c, "x", &X);
  double *y = made(c, "y", &Y);
  const int64_t k = c->n_dims > 0 ? c->dims[c->n_dims - 1] : 0;
  if (variant > 0) return false;
  if (x == NULL || y == NULL || !has_all(c, 2) || k == 0 || Y % k != 0 || X % (Y / k) != 0 || X / (Y / k) < k)
    return true;
  const int64_t columns = X / (Y / k);
  c->selects = true;
  for (int64_t i = 0; i < X; i++) {
    const int64_t row = i / columns, before = rank_of(x + row * columns, columns, i % columns);
    if (before < k) y[row * k + before] = (double)(i % columns);
  }
  snprintf(c->formula, sizeof c->formula, "y = the places of the %lld largest of each row of x", (long long)k);
  c->fits = true;
  return true;
}

const struct kernel_named_formula kernel_sequence_formulas[] = {
    {"selective_scan", scan},  {"selective_scan_backward", scan_slopes},
    {"cumsum", running_sums},  {"top_k_mask", largest_mask},
    {"top_k", largest_places}, {NULL, NULL},
};
