/* Formulas of the largest of windows of images. */
#include <math.h>

#include "gen/verify/kernels/case.h"

/* Windows of `kernel` x `kernel` positions over planes [x_rows][x_columns], a `stride` from one to the next, from
 * `padding` before the edges on. */
struct windows {
  int64_t planes, x[2], y[2], kernel, stride, padding;
};

enum { KERNELS = 7, STRIDES = 4, PADDINGS = 4 };

/* The windows of a variant; the name has the shape of what is read, and then the last extent of the other one where
 * that differs. False: they do not fit. */
static bool windows_of(const struct kernel_case *c, int variant, int64_t named, int64_t other, bool back,
                       struct windows *w) {
  if (c->n_dims < 4) return false;
  const int64_t planes = c->dims[0] * c->dims[1], last = c->dims[c->n_dims - 1];
  const int64_t own[] = {c->dims[2], c->dims[3]}, others[] = {other / (planes * last), last};
  if (named != planes * own[0] * own[1] || other != planes * others[0] * others[1]) return false;
  *w = (struct windows){.planes = planes,
                        .kernel = 1 + variant % KERNELS,
                        .stride = 1 + variant / KERNELS % STRIDES,
                        .padding = variant / (KERNELS * STRIDES)};
  for (int k = 0; k < 2; k++) {
    w->x[k] = back ? others[k] : own[k];
    w->y[k] = back ? own[k] : others[k];
    const int64_t room = w->x[k] + 2 * w->padding - w->kernel;
    if (room < 0 || room / w->stride + 1 != w->y[k] || 2 * w->padding > w->kernel) return false;
  }
  return true;
}

/* The place in its plane of the first largest number of window `at`. */
static int64_t largest_of(const struct windows *w, const double *plane, int64_t at) {
  const int64_t top = at / w->y[1] * w->stride - w->padding, left = at % w->y[1] * w->stride - w->padding;
  int64_t found = -1;
  for (int64_t t = 0; t < w->kernel * w->kernel; t++) {
    const int64_t row = top + t / w->kernel, column = left + t % w->kernel;
    if (row < 0 || row >= w->x[0] || column < 0 || column >= w->x[1]) continue;
    if (found < 0 || plane[row * w->x[1] + column] > plane[found]) found = row * w->x[1] + column;
  }
  return found;
}

static void says_windows(struct kernel_case *c, const struct windows *w, const char *what) {
  snprintf(c->formula, sizeof c->formula, "%s of each window of %lld x %lld, stride %lld, padding %lld", what,
           (long long)w->kernel, (long long)w->kernel, (long long)w->stride, (long long)w->padding);
  c->is_open = c->selects = true;
  c->fits = true;
}

static bool largest(struct kernel_case *c, int variant) {
  int64_t X, Y;
  const double *x = given(c, "x", &X);
  double *y = made(c, "y", &Y);
  struct windows w;
  if (variant >= KERNELS * STRIDES * PADDINGS) return false;
  if (x == NULL || y == NULL || !has_all(c, 2) || !windows_of(c, variant, X, Y, false, &w)) return true;
  const int64_t of_y = w.y[0] * w.y[1], of_x = w.x[0] * w.x[1];
  for (int64_t i = 0; i < Y; i++) {
    const double *plane = x + i / of_y * of_x;
    y[i] = plane[largest_of(&w, plane, i % of_y)];
  }
  says_windows(c, &w, "y = the largest");
  return true;
}

static bool largest_slopes(struct kernel_case *c, int variant) {
  int64_t X, Y, D;
  const double *x = given(c, "x", &X), *dy = given(c, "dy", &Y);
  double *dx = made(c, "dx", &D);
  struct windows w;
  if (variant >= KERNELS * STRIDES * PADDINGS) return false;
  if (x == NULL || dy == NULL || dx == NULL || !has_all(c, 3) || D != X || !windows_of(c, variant, Y, X, true, &w))
    return true;
  const int64_t of_y = w.y[0] * w.y[1], of_x = w.x[0] * w.x[1];
  for (int64_t i = 0; i < X; i++) dx[i] = 0;
  for (int64_t i = 0; i < Y; i++) {
    const int64_t plane = i / of_y * of_x;
    dx[plane + largest_of(&w, x + plane, i % of_y)] += dy[i];
  }
  c->terms = w.kernel * w.kernel;
  says_windows(c, &w, "dx = the sums of dy at the first largest");
  return true;
}

const struct kernel_named_formula kernel_pool_formulas[] = {
    {"max_pool", largest},
    {"max_pool_backward", largest_slopes},
    {NULL, NULL},
};
