/* accel/images.h: pooling, and images at other sizes. */
#include <math.h>

#include "gen/verify/tape/elements.h"
#include "gen/verify/tape/tape.h"

/* Each position of the result has a range of rows and one of columns. */
struct range {
  int64_t from, to;
};

typedef struct range range_of(int64_t i, int64_t extent, const int64_t *numbers);

/* Of kernel, stride and padding. */
static struct range window(int64_t i, int64_t extent, const int64_t *numbers) {
  (void)extent;
  return (struct range){i * numbers[1] - numbers[2], i * numbers[1] - numbers[2] + numbers[0]};
}

/* Of as many parts as numbers[0]. */
static struct range part(int64_t i, int64_t extent, const int64_t *numbers) {
  return (struct range){i * extent / numbers[0], ((i + 1) * extent + numbers[0] - 1) / numbers[0]};
}

static tensor as_image(tensor x) {
  return x->rank == 3 ? reshaped(x, 4, (const int64_t[]){x->dim[0], x->dim[1], 1, x->dim[2]}) : x;
}

static tensor as_signal(tensor y) {
  return reshaped(y, 3, (const int64_t[]){y->dim[0], y->dim[1], y->dim[3]});
}

static int64_t pooled(int64_t extent, int64_t kernel, int64_t stride, int64_t padding) {
  return (extent + 2 * padding - kernel) / stride + 1;
}

/* The place of the largest within a window of an image. */
static int64_t largest(const double *x, int64_t width, int64_t height, struct range h, struct range w) {
  int64_t best = -1;
  for (int64_t r = h.from < 0 ? 0 : h.from; r < h.to && r < height; r++)
    for (int64_t c = w.from < 0 ? 0 : w.from; c < w.to && c < width; c++)
      if (best < 0 || x[r * width + c] > x[best]) best = r * width + c;
  return best;
}

static tensor max_pool(tensor x, const int64_t *h, const int64_t *w) {
  const int64_t height = x->dim[2], width = x->dim[3];
  const int64_t dim[] = {x->dim[0], x->dim[1], pooled(height, h[0], h[1], h[2]), pooled(width, w[0], w[1], w[2])};
  const int64_t count = dim[0] * dim[1] * dim[2] * dim[3];
  int64_t *places = tape_memory(count, sizeof *places);
  for (int64_t i = 0; i < count; i++) {
    const int64_t image = i / (dim[2] * dim[3]) * height * width;
    places[i] = image + largest(x->values + image, width, height, window(i / dim[3] % dim[2], height, h),
                                window(i % dim[3], width, w));
  }
  return pick(x, 4, dim, places);
}

tensor max_pool1d(tensor x, int kernel, int stride, int padding) {
  return as_signal(max_pool(as_image(x), (const int64_t[]){1, 1, 0}, (const int64_t[]){kernel, stride, padding}));
}

tensor max_pool2d(tensor x, int kernel, int stride, int padding) {
  const int64_t both[] = {kernel, stride, padding};
  return max_pool(x, both, both);
}

/* The sum of a window's positions times factors: [most] places for each position of the result. */
static tensor weighted(tensor x, const int64_t *dim, int64_t most, int64_t *places, const double *factors) {
  const int64_t count = dim[0] * dim[1] * dim[2] * dim[3];
  tensor factor = tape_new(2, (const int64_t[]){count, most});
  for (int64_t i = 0; i < count * most; i++) factor->values[i] = factors[i];
  tensor terms = mul(pick(x, 2, (const int64_t[]){count, most}, places), factor);
  return reshaped(sum(terms, 1), 4, dim);
}

/* The mean of each window. */
static tensor means(tensor x, int64_t rows, int64_t columns, range_of *range, const int64_t *h, const int64_t *w) {
  const int64_t height = x->dim[2], width = x->dim[3], dim[] = {x->dim[0], x->dim[1], rows, columns};
  int64_t count = dim[0] * dim[1] * rows * columns, most = 0;
  for (int64_t i = 0; i < rows * columns; i++) {
    const struct range r = range(i / columns, height, h), c = range(i % columns, width, w);
    most = (r.to - r.from) * (c.to - c.from) > most ? (r.to - r.from) * (c.to - c.from) : most;
  }
  int64_t *places = tape_memory(count * most, sizeof *places);
  double *factors = tape_memory(count * most, sizeof *factors);
  for (int64_t i = 0; i < count; i++) {
    const struct range r = range(i / columns % rows, height, h), c = range(i % columns, width, w);
    const int64_t across = c.to - c.from, all = (r.to - r.from) * across;
    for (int64_t j = 0; j < most; j++) {
      const int64_t row = r.from + j / across, column = c.from + j % across;
      const bool inside = j < all && row >= 0 && row < height && column >= 0 && column < width;
      places[i * most + j] = inside ? i / (rows * columns) * height * width + row * width + column : -1;
      factors[i * most + j] = inside ? 1 / (double)all : 0;
    }
  }
  return weighted(x, dim, most, places, factors);
}

tensor avg_pool1d(tensor x, int kernel, int stride, int padding) {
  const int64_t flat[] = {1, 1, 0}, w[] = {kernel, stride, padding};
  return as_signal(means(as_image(x), 1, pooled(x->dim[2], kernel, stride, padding), window, flat, w));
}

tensor avg_pool2d(tensor x, int kernel, int stride, int padding) {
  const int64_t both[] = {kernel, stride, padding};
  return means(x, pooled(x->dim[2], kernel, stride, padding), pooled(x->dim[3], kernel, stride, padding), window, both,
               both);
}

tensor adaptive_avg_pool1d(tensor x, int length) {
  return as_signal(means(as_image(x), 1, length, part, (const int64_t[]){1}, (const int64_t[]){length}));
}

tensor adaptive_avg_pool2d(tensor x, int height, int width) {
  return means(x, height, width, part, (const int64_t[]){height}, (const int64_t[]){width});
}

/* ---- Other sizes ---- */

/* The two positions of an axis that position i of `to` lies between, and the share of the second. */
struct between {
  int64_t a, b;
  double share;
};

enum way { NEAREST, BILINEAR, CORNERS };

static struct between between(int64_t i, int64_t from, int64_t to, enum way way) {
  if (way == NEAREST) return (struct between){i * from / to, i * from / to, 0};
  double at = fmax(((double)i + 0.5) * (double)from / (double)to - 0.5, 0);
  if (way == CORNERS) at = to > 1 ? (double)i * (double)(from - 1) / (double)(to - 1) : 0;
  const int64_t a = (int64_t)floor(at) < from - 1 ? (int64_t)floor(at) : from - 1;
  return (struct between){a, a + 1 < from ? a + 1 : a, at - (double)a};
}

static tensor interpolate(tensor x, int height, int width, enum way way) {
  const int64_t dim[] = {x->dim[0], x->dim[1], height, width}, count = dim[0] * dim[1] * height * width;
  int64_t *places = tape_memory(count * 4, sizeof *places);
  double *factors = tape_memory(count * 4, sizeof *factors);
  for (int64_t i = 0; i < count; i++) {
    const struct between r = between(i / width % height, x->dim[2], height, way);
    const struct between c = between(i % width, x->dim[3], width, way);
    const int64_t image = i / ((int64_t)height * width) * x->dim[2] * x->dim[3];
    for (int k = 0; k < 4; k++) {
      places[4 * i + k] = image + (k / 2 ? r.b : r.a) * x->dim[3] + (k % 2 ? c.b : c.a);
      factors[4 * i + k] = (k / 2 ? r.share : 1 - r.share) * (k % 2 ? c.share : 1 - c.share);
    }
  }
  return weighted(x, dim, 4, places, factors);
}

tensor interpolate_nearest(tensor x, int height, int width) {
  return interpolate(x, height, width, NEAREST);
}

tensor interpolate_bilinear(tensor x, int height, int width) {
  return interpolate(x, height, width, BILINEAR);
}

tensor interpolate_bilinear_corners(tensor x, int height, int width) {
  return interpolate(x, height, width, CORNERS);
}
