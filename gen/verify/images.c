/* accel/images.h: convolutions and windows. Signals are images of height 1. */
#include <math.h>

#include "gen/verify/layers.h"
#include "gen/verify/tape/elements.h"
#include "gen/verify/tape/known.h"
#include "gen/verify/tape/tape.h"

/* Of a window along one direction: position i of the result sees i stride - padding + j dilation, j below kernel. */
struct window {
  int64_t kernel, stride, padding, dilation;
};

static int64_t result_extent(int64_t extent, struct window w) {
  return (extent + 2 * w.padding - w.dilation * (w.kernel - 1) - 1) / w.stride + 1;
}

/* x [batch][channels][length] as images of height 1. */
static tensor as_image(tensor x) {
  if (x->rank != 3) tape_refuse("a signal has three axes, not %d", x->rank);
  return reshaped(x, 4, (const int64_t[]){x->dim[0], x->dim[1], 1, x->dim[2]});
}

static tensor as_signal(tensor y) {
  return reshaped(y, 3, (const int64_t[]){y->dim[0], y->dim[1], y->dim[3]});
}

/* An image's extents, and those of the result of its windows. */
struct extents {
  int64_t batch, channels, height, width, rows, columns;
};

/* The place in x of position (row, column) of sample b's channel; -1: around it. */
static int64_t place_of(const struct extents *e, int64_t b, int64_t channel, int64_t row, int64_t column) {
  if (row < 0 || column < 0 || row >= e->height || column >= e->width) return -1;
  return ((b * e->channels + channel) * e->height + row) * e->width + column;
}

static struct extents extents_of(tensor x, struct window h, struct window w) {
  if (x->rank != 4) tape_refuse("an image has four axes, not %d", x->rank);
  return (struct extents){
      x->dim[0], x->dim[1], x->dim[2], x->dim[3], result_extent(x->dim[2], h), result_extent(x->dim[3], w)};
}

/* Places of [groups][batch][rows][columns][channels of a group][kernel][kernel], from the image. */
static int64_t *windows(const struct extents *e, struct window h, struct window w, int64_t groups, int64_t *count) {
  const int64_t own = e->channels / groups, taps = h.kernel * w.kernel;
  *count = groups * e->batch * e->rows * e->columns * own * taps;
  int64_t *places = tape_memory(*count, sizeof *places);
  for (int64_t i = 0; i < *count; i++) {
    int64_t rest = i;
    const int64_t kw = rest % w.kernel, kh = (rest /= w.kernel) % h.kernel, c = (rest /= h.kernel) % own;
    const int64_t column = (rest /= own) % e->columns, row = (rest /= e->columns) % e->rows;
    const int64_t b = (rest /= e->rows) % e->batch, g = rest / e->batch;
    places[i] = place_of(e, b, g * own + c, row * h.stride - h.padding + kh * h.dilation,
                         column * w.stride - w.padding + kw * w.dilation);
  }
  return places;
}

/* [groups][batch][positions][out of a group] as [batch][groups out][rows][columns]. */
static tensor images_of(tensor y, int64_t groups, const struct extents *e, int64_t out) {
  const int64_t positions = e->rows * e->columns, dim[] = {e->batch, groups * out, e->rows, e->columns};
  int64_t *places = tape_memory(y->count, sizeof *places);
  for (int64_t i = 0; i < y->count; i++) {
    const int64_t position = i % positions, channel = i / positions % (groups * out),
                  b = i / positions / (groups * out);
    places[i] = ((channel / out * e->batch + b) * positions + position) * out + channel % out;
  }
  return pick(y, 4, dim, places);
}

/* e: of the image, whose windows are positions of `channels` channels. */
static void note(const struct extents *e, struct window h, struct window w, int64_t groups, int64_t channels) {
  const struct known_convolution shape = {
      .batch = e->batch,
      .groups = groups,
      .x_channels = e->channels,
      .y_channels = channels,
      .x = {e->height, e->width},
      .y = {e->rows, e->columns},
      .kernel = {h.kernel, w.kernel},
      .stride = {h.stride, w.stride},
      .padding = {h.padding, w.padding},
      .dilation = {h.dilation, w.dilation},
  };
  tape_note_convolution(&shape);
}

static tensor convolve(tensor x, tensor weight, struct window h, struct window w, int64_t groups) {
  const struct extents e = extents_of(x, h, w);
  const int64_t out = weight->dim[0] / groups, terms = weight->count / weight->dim[0];
  if (terms != e.channels / groups * h.kernel * w.kernel) tape_refuse("a convolution's weight does not fit");
  note(&e, h, w, groups, weight->dim[0]);
  int64_t count, *places = windows(&e, h, w, groups, &count);
  const int64_t dim[] = {groups, e.batch * e.rows * e.columns, terms}, of_weight[] = {groups, out, terms};
  tensor y = matmul_transposed(pick(x, 3, dim, places), reshaped(weight, 3, of_weight));
  return images_of(y, groups, &e, out);
}

/* The other way: each position of x adds to a window of the result, of `rows` and `columns`. */
static tensor spread(tensor x, tensor weight, struct window h, struct window w, int64_t extra, int64_t groups) {
  const int64_t own = x->dim[1] / groups, taps = h.kernel * w.kernel, out = weight->count / weight->dim[0] / taps;
  const struct extents to = {
      .batch = x->dim[0],
      .channels = groups * out,
      .height =
          (x->dim[2] - 1) * h.stride - 2 * h.padding + h.dilation * (h.kernel - 1) + 1 + (h.kernel > 0 ? extra : 0),
      .width = (x->dim[3] - 1) * w.stride - 2 * w.padding + w.dilation * (w.kernel - 1) + 1 + extra,
      .rows = x->dim[2],
      .columns = x->dim[3],
  };
  const int64_t positions = to.rows * to.columns, of_x[] = {to.batch, groups, own, positions};
  tensor rows = transpose(transpose(reshaped(x, 4, of_x), 2, 3), 0, 1); /* [groups][batch][positions][own] */
  rows = reshaped(rows, 3, (const int64_t[]){groups, to.batch * positions, own});
  tensor terms = matmul(rows, reshaped(weight, 3, (const int64_t[]){groups, own, out * taps}));
  note(&to, h, w, groups, x->dim[1]);
  int64_t count, *places = windows(&to, h, w, groups, &count);
  return drop(terms, 4, (const int64_t[]){to.batch, to.channels, to.height, to.width}, places);
}

/* ---- With a weight that is given ---- */

tensor convolve2d_pairs(tensor x, tensor weight, int stride_height, int stride_width, int padding_height,
                        int padding_width, int dilation_height, int dilation_width, int groups) {
  const struct window h = {weight->dim[2], stride_height, padding_height, dilation_height};
  const struct window w = {weight->dim[3], stride_width, padding_width, dilation_width};
  return convolve(x, weight, h, w, groups);
}

tensor convolve2d(tensor x, tensor weight, int stride, int padding, int dilation, int groups) {
  return convolve2d_pairs(x, weight, stride, stride, padding, padding, dilation, dilation, groups);
}

tensor convolve1d(tensor x, tensor weight, int stride, int padding, int dilation, int groups) {
  return as_signal(convolve2d_pairs(as_image(x), as_image(weight), 1, stride, 0, padding, 1, dilation, groups));
}

tensor convolve_transposed2d(tensor x, tensor weight, int stride, int padding, int output_padding, int dilation,
                             int groups) {
  const struct window h = {weight->dim[2], stride, padding, dilation}, w = {weight->dim[3], stride, padding, dilation};
  return spread(x, weight, h, w, output_padding, groups);
}

tensor convolve_transposed1d(tensor x, tensor weight, int stride, int padding, int output_padding, int dilation,
                             int groups) {
  const struct window flat = {1, 1, 0, 1}, w = {weight->dim[2], stride, padding, dilation};
  tensor y = spread(as_image(x), as_image(weight), flat, w, output_padding, groups);
  return as_signal(slice(y, 2, 0, 1));
}

/* ---- Layers ---- */

/* A layer over images (flat: signals) with a bias or without one. */
static tensor layer(scope s, tensor x, int out, bool flat, int kernel, int stride, int padding, int dilation,
                    int groups, bool bias) {
  const int64_t own = x->dim[1] / groups, dim[] = {out, own, kernel, kernel};
  const double bound = 1 / sqrt((double)(own * kernel * (flat ? 1 : kernel)));
  tensor weight = parameter_of_layer(s, "weight", flat ? 3 : 4, dim, START_UNIFORM, -bound, bound);
  tensor y = flat ? convolve1d(x, weight, stride, padding, dilation, groups)
                  : convolve2d(x, weight, stride, padding, dilation, groups);
  if (!bias) return y;
  return add(y, reshaped(bias_of_layer(s, out, bound), flat ? 2 : 3, (const int64_t[]){out, 1, 1}));
}

tensor conv1d(scope s, tensor x, int out, int kernel, int stride, int padding) {
  return layer(s, x, out, true, kernel, stride, padding, 1, 1, true);
}

tensor conv1d_no_bias(scope s, tensor x, int out, int kernel, int stride, int padding) {
  return layer(s, x, out, true, kernel, stride, padding, 1, 1, false);
}

tensor conv2d(scope s, tensor x, int out, int kernel, int stride, int padding) {
  return layer(s, x, out, false, kernel, stride, padding, 1, 1, true);
}

tensor conv2d_no_bias(scope s, tensor x, int out, int kernel, int stride, int padding) {
  return layer(s, x, out, false, kernel, stride, padding, 1, 1, false);
}

tensor conv1d_grouped(scope s, tensor x, int out, int kernel, int stride, int padding, int dilation, int groups) {
  return layer(s, x, out, true, kernel, stride, padding, dilation, groups, true);
}

tensor conv1d_grouped_no_bias(scope s, tensor x, int out, int kernel, int stride, int padding, int dilation,
                              int groups) {
  return layer(s, x, out, true, kernel, stride, padding, dilation, groups, false);
}

tensor conv2d_grouped(scope s, tensor x, int out, int kernel, int stride, int padding, int dilation, int groups) {
  return layer(s, x, out, false, kernel, stride, padding, dilation, groups, true);
}

tensor conv2d_grouped_no_bias(scope s, tensor x, int out, int kernel, int stride, int padding, int dilation,
                              int groups) {
  return layer(s, x, out, false, kernel, stride, padding, dilation, groups, false);
}

static tensor widening(scope s, tensor x, int out, bool flat, int kernel, int stride, int padding) {
  const int64_t dim[] = {x->dim[1], out, kernel, kernel};
  const double bound = 1 / sqrt((double)((int64_t)out * kernel * (flat ? 1 : kernel)));
  tensor weight = parameter_of_layer(s, "weight", flat ? 3 : 4, dim, START_UNIFORM, -bound, bound);
  tensor y = flat ? convolve_transposed1d(x, weight, stride, padding, 0, 1, 1)
                  : convolve_transposed2d(x, weight, stride, padding, 0, 1, 1);
  return add(y, reshaped(bias_of_layer(s, out, bound), flat ? 2 : 3, (const int64_t[]){out, 1, 1}));
}

tensor conv_transpose1d(scope s, tensor x, int out, int kernel, int stride, int padding) {
  return widening(s, x, out, true, kernel, stride, padding);
}

tensor conv_transpose2d(scope s, tensor x, int out, int kernel, int stride, int padding) {
  return widening(s, x, out, false, kernel, stride, padding);
}
