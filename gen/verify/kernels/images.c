/* Formulas of convolutions. Their strides and paddings are those of the model's own, as the reading has met them. */
#include <string.h>

#include "gen/verify/kernels/case.h"

/* Products in a result that is computed whole; of a larger one some elements are. */
enum { MOST_PRODUCTS = 4000000 };

static int64_t count_of_x(const struct known_convolution *v) {
  return v->batch * v->x_channels * v->x[0] * v->x[1];
}

static int64_t count_of_y(const struct known_convolution *v) {
  return v->batch * v->y_channels * v->y[0] * v->y[1];
}

static int64_t count_of_weights(const struct known_convolution *v) {
  return v->y_channels * (v->x_channels / v->groups) * v->kernel[0] * v->kernel[1];
}

/* The number of x that weight (o, c) at `tap` meets for y's position `at`; 0 around the image. */
static double of_x(const struct known_convolution *v, const double *x, int64_t b, int64_t o, int64_t c,
                   const int64_t at[2], const int64_t tap[2]) {
  const int64_t own = v->x_channels / v->groups, channel = o / (v->y_channels / v->groups) * own + c;
  int64_t place[2];
  for (int k = 0; k < 2; k++) {
    place[k] = at[k] * v->stride[k] - v->padding[k] + tap[k] * v->dilation[k];
    if (place[k] < 0 || place[k] >= v->x[k]) return 0;
  }
  return x[((b * v->x_channels + channel) * v->x[0] + place[0]) * v->x[1] + place[1]];
}

static double weight_at(const struct known_convolution *v, const double *w, int64_t o, int64_t c,
                        const int64_t tap[2]) {
  return w[((o * (v->x_channels / v->groups) + c) * v->kernel[0] + tap[0]) * v->kernel[1] + tap[1]];
}

/* y[b][o][row][column] = the sum over channels and taps of x weight. */
static double result_of(const struct known_convolution *v, const double *x, const double *w, int64_t i) {
  const int64_t at[] = {i / v->y[1] % v->y[0], i % v->y[1]};
  const int64_t o = i / (v->y[0] * v->y[1]) % v->y_channels, b = i / (v->y[0] * v->y[1] * v->y_channels);
  double sum = 0;
  for (int64_t c = 0; c < v->x_channels / v->groups; c++)
    for (int64_t t = 0; t < v->kernel[0] * v->kernel[1]; t++) {
      const int64_t tap[] = {t / v->kernel[1], t % v->kernel[1]};
      sum += of_x(v, x, b, o, c, at, tap) * weight_at(v, w, o, c, tap);
    }
  return sum;
}

/* dx[b][channel][row][column] = the sum over y's positions that see it. */
static double slope_of_x(const struct known_convolution *v, const double *dy, const double *w, int64_t i) {
  const int64_t at[] = {i / v->x[1] % v->x[0], i % v->x[1]}, own = v->x_channels / v->groups;
  const int64_t channel = i / (v->x[0] * v->x[1]) % v->x_channels, b = i / (v->x[0] * v->x[1] * v->x_channels);
  const int64_t each = v->y_channels / v->groups, first = channel / own * each;
  double sum = 0;
  for (int64_t t = 0; t < v->kernel[0] * v->kernel[1]; t++) {
    const int64_t tap[] = {t / v->kernel[1], t % v->kernel[1]};
    int64_t from[2];
    bool seen = true;
    for (int k = 0; k < 2; k++) {
      const int64_t place = at[k] + v->padding[k] - tap[k] * v->dilation[k];
      from[k] = place / v->stride[k];
      seen = seen && place >= 0 && place % v->stride[k] == 0 && from[k] < v->y[k];
    }
    for (int64_t o = first; o < first + each && seen; o++)
      sum += dy[((b * v->y_channels + o) * v->y[0] + from[0]) * v->y[1] + from[1]] *
             weight_at(v, w, o, channel % own, tap);
  }
  return sum;
}

/* dweight[o][c][kh][kw] = the sum over samples and positions of dy x. */
static double slope_of_weight(const struct known_convolution *v, const double *dy, const double *x, int64_t i) {
  const int64_t taps = v->kernel[0] * v->kernel[1], own = v->x_channels / v->groups;
  const int64_t tap[] = {i / v->kernel[1] % v->kernel[0], i % v->kernel[1]}, c = i / taps % own, o = i / (taps * own);
  double sum = 0;
  for (int64_t b = 0; b < v->batch; b++)
    for (int64_t t = 0; t < v->y[0] * v->y[1]; t++) {
      const int64_t at[] = {t / v->y[1], t % v->y[1]};
      sum += dy[(b * v->y_channels + o) * v->y[0] * v->y[1] + t] * of_x(v, x, b, o, c, at, tap);
    }
  return sum;
}

/* A convolution of the model, made of two arrays; variant: its number, and whether it is added to what is there. */
static bool convolved(struct kernel_case *c, int variant, const char *what, const char *to, const char *from,
                      const char *by,
                      double (*element)(const struct known_convolution *v, const double *a, const double *b, int64_t i),
                      int64_t (*counts[3])(const struct known_convolution *v)) {
  int64_t count[3];
  double *made_of = made(c, to, &count[0]);
  const double *a = given(c, from, &count[1]), *b = given(c, by, &count[2]), *before = given(c, to, NULL);
  const struct known_convolution *v = c->known->convolutions;
  for (int i = 0; i < variant / 2 && v != NULL; i++) v = v->next;
  if (v == NULL) return false;
  if (made_of == NULL || a == NULL || b == NULL || !has_all(c, 3)) return true;
  for (int k = 0; k < 3; k++)
    if (counts[k](v) != count[k]) return true;
  const double products = (double)count_of_y(v) * (double)(count_of_weights(v) / v->y_channels);
  c->stride = 1 + (int64_t)(products / MOST_PRODUCTS);
  c->terms = (int64_t)(products / (double)count[0]) + 1;
  for (int64_t i = 0; i < count[0]; i += c->stride) made_of[i] = (variant % 2 ? before[i] : 0) + element(v, a, b, i);
  snprintf(c->formula, sizeof c->formula, "%s %s %s: [%lld][%lld] windows, strides %lld %lld, paddings %lld %lld", to,
           variant % 2 ? "+=" : "=", what, (long long)v->kernel[0], (long long)v->kernel[1], (long long)v->stride[0],
           (long long)v->stride[1], (long long)v->padding[0], (long long)v->padding[1]);
  c->fits = true;
  return true;
}

static bool convolution(struct kernel_case *c, int variant) {
  return convolved(c, variant, "x convolved with weight", "y", "x", "weight", result_of,
                   (int64_t (*[])(const struct known_convolution *)){count_of_y, count_of_x, count_of_weights});
}

static bool convolution_data(struct kernel_case *c, int variant) {
  return convolved(c, variant, "the sums of dy weight", "dx", "dy", "weight", slope_of_x,
                   (int64_t (*[])(const struct known_convolution *)){count_of_x, count_of_y, count_of_weights});
}

static bool convolution_weights(struct kernel_case *c, int variant) {
  return convolved(c, variant, "the sums of dy x", "dweight", "dy", "x", slope_of_weight,
                   (int64_t (*[])(const struct known_convolution *)){count_of_weights, count_of_y, count_of_x});
}

const struct kernel_named_formula kernel_image_formulas[] = {
    {"convolution", convolution},
    {"convolution_data", convolution_data},
    {"convolution_weights", convolution_weights},
    {"convolution_add", convolution},
    {"convolution_data_add", convolution_data},
    {"convolution_weights_add", convolution_weights},
    {NULL, NULL},
};
