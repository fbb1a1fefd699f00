/* accel/model.h's sums over axes, and what is made of sums over rows. */
#include "gen/verify/names.h"

#include <math.h>

#include "gen/verify/tape/elements.h"
#include "gen/verify/tape/tape.h"

/* ---- Over an axis ---- */

tensor sum(tensor x, int axis) {
  axis = tape_axis(x, axis, "sum");
  const int64_t inner = extent(x, axis + 1, x->rank), among = x->dim[axis];
  int64_t dim[MOST_AXES], *places = tape_memory(x->count, sizeof *places);
  int rank = 0;
  for (int i = 0; i < x->rank; i++)
    if (i != axis) dim[rank++] = x->dim[i];
  for (int64_t i = 0; i < x->count; i++) places[i] = i / (inner * among) * inner + i % inner;
  return drop(x, rank, dim, places);
}

tensor mean(tensor x, int axis) {
  axis = tape_axis(x, axis, "mean");
  return scale(sum(x, axis), 1 / (double)x->dim[axis]);
}

/* The mean over an axis, at the extents of x. */
static tensor mean_kept(tensor x, int axis) {
  int64_t dim[MOST_AXES];
  for (int i = 0; i < x->rank; i++) dim[i] = i == axis ? 1 : x->dim[i];
  return expand(reshaped(mean(x, axis), x->rank, dim), x->rank, x->dim, "mean");
}

tensor variance(tensor x, int axis) {
  axis = tape_axis(x, axis, "variance");
  return mean(square(sub(x, mean_kept(x, axis))), axis);
}

tensor sum_all(tensor x) {
  int64_t *places = tape_memory(x->count, sizeof *places);
  return drop(x, 0, NULL, places);
}

tensor mean_all(tensor x) {
  return scale(sum_all(x), 1 / (double)x->count);
}

static void cumsum_backward(tensor y) {
  double *dx = tape_gradient(y->of[0]);
  const int64_t inner = y->places[0], among = y->places[1];
  for (int64_t i = 0; i < y->count; i++) {
    double total = 0;
    for (int64_t j = i / inner % among, at = i; j < among; j++, at += inner) total += y->gradient[at];
    dx[i] += total;
  }
}

tensor cumsum(tensor x, int axis) {
  axis = tape_axis(x, axis, "cumsum");
  const int64_t inner = extent(x, axis + 1, x->rank), among = x->dim[axis];
  tensor y = tape_like(x);
  y->places = tape_memory(2, sizeof *y->places);
  y->places[0] = inner;
  y->places[1] = among;
  for (int64_t i = 0; i < x->count; i++)
    y->values[i] = x->values[i] + (i / inner % among > 0 ? y->values[i - inner] : 0);
  return tape_end(y, cumsum_backward, 1 + sqrt((double)among / 8), x, NULL, NULL);
}

/* ---- Over rows ---- */

static void softmax_backward(tensor y) {
  double *dx = tape_gradient(y->of[0]);
  const int64_t columns = columns_of(y), rows = rows_of(y);
#pragma omp parallel for schedule(static) if (y->count > MANY)
  for (int64_t r = 0; r < rows; r++) {
    const double *p = y->values + r * columns, *dy = y->gradient + r * columns;
    double dot = 0;
    for (int64_t c = 0; c < columns; c++) dot += p[c] * dy[c];
    for (int64_t c = 0; c < columns; c++) dx[r * columns + c] += p[c] * (dy[c] - dot);
  }
}

/* The largest of a row, and the logarithm of the sum of e^(x - largest). */
static void log_of_row(const double *x, int64_t columns, double *highest, double *rest) {
  double sum = 0;
  *highest = -INFINITY;
  for (int64_t c = 0; c < columns; c++) *highest = fmax(*highest, x[c]);
  for (int64_t c = 0; c < columns; c++) sum += exp(x[c] - *highest);
  *rest = log(sum);
}

tensor softmax(tensor x) {
  const int64_t columns = columns_of(x), rows = rows_of(x);
  tensor y = tape_like(x);
#pragma omp parallel for schedule(static) if (y->count > MANY)
  for (int64_t r = 0; r < rows; r++) {
    double highest, rest;
    log_of_row(x->values + r * columns, columns, &highest, &rest);
    for (int64_t c = 0; c < columns; c++) y->values[r * columns + c] = exp(x->values[r * columns + c] - highest - rest);
  }
  return tape_end(y, softmax_backward, 2, x, NULL, NULL);
}

static void log_softmax_backward(tensor y) {
  double *dx = tape_gradient(y->of[0]);
  const int64_t columns = columns_of(y), rows = rows_of(y);
#pragma omp parallel for schedule(static) if (y->count > MANY)
  for (int64_t r = 0; r < rows; r++) {
    const double *l = y->values + r * columns, *dy = y->gradient + r * columns;
    double total = 0;
    for (int64_t c = 0; c < columns; c++) total += dy[c];
    for (int64_t c = 0; c < columns; c++) dx[r * columns + c] += dy[c] - exp(l[c]) * total;
  }
}

tensor log_softmax(tensor x) {
  const int64_t columns = columns_of(x), rows = rows_of(x);
  tensor y = tape_like(x);
#pragma omp parallel for schedule(static) if (y->count > MANY)
  for (int64_t r = 0; r < rows; r++) {
    double highest, rest;
    log_of_row(x->values + r * columns, columns, &highest, &rest);
    for (int64_t c = 0; c < columns; c++) y->values[r * columns + c] = x->values[r * columns + c] - highest - rest;
  }
  return tape_end(y, log_softmax_backward, 2, x, NULL, NULL);
}

static void log_sum_exp_backward(tensor y) {
  double *dx = tape_gradient(y->of[0]);
  const int64_t columns = columns_of(y->of[0]);
  for (int64_t i = 0; i < y->of[0]->count; i++)
    dx[i] += y->gradient[i / columns] * exp(y->of[0]->values[i] - y->values[i / columns]);
}

tensor log_sum_exp(tensor x) {
  tensor y = tape_new(x->rank - 1, x->dim);
  for (int64_t r = 0; r < y->count; r++) {
    double highest, rest;
    log_of_row(x->values + r * columns_of(x), columns_of(x), &highest, &rest);
    y->values[r] = highest + rest;
  }
  return tape_end(y, log_sum_exp_backward, 2, x, NULL, NULL);
}

/* The length of each row, at least 1e-12, at the extents of x. */
static tensor lengths(tensor x, double least) {
  return maximum(sqrt_of(row_sums(square(x))), constant_of(least, 0));
}

tensor normalize(tensor x) {
  return divide(x, lengths(x, 1e-12));
}

tensor cosine_similarity(tensor a, tensor b) {
  tensor product = mul(a, b);
  return sum(divide(product, mul(lengths(a, 1e-8), lengths(b, 1e-8))), product->rank - 1);
}

tensor triplet_margin_loss(tensor anchor, tensor positive, tensor negative, double margin) {
  tensor near = shift(sub(anchor, positive), 1e-6), far = shift(sub(anchor, negative), 1e-6);
  near = sqrt_of(sum(square(near), near->rank - 1));
  far = sqrt_of(sum(square(far), far->rank - 1));
  return mean_all(relu(shift(sub(near, far), margin)));
}
