#include "tests/ops/cases.h"

/* ---- Convolutions ---- */

/* What a convolution along one axis is given: x, and a kernel that fits on it. */
struct along {
  int64_t extent, kernel, stride, padding, dilation;
};

static struct along random_along(struct lab *lab, int64_t dilations) {
  struct along along = {.kernel = 1 + lab_random(lab, 3), .stride = 1 + lab_random(lab, 3)};
  along.dilation = 1 + lab_random(lab, dilations);
  along.padding = lab_random(lab, along.kernel);
  int64_t reach = (along.kernel - 1) * along.dilation + 1 - 2 * along.padding;
  along.extent = (reach > 1 ? reach : 1) + lab_random(lab, 5);
  return along;
}

static struct shape image(int64_t batch, int64_t channels, int rank, int64_t height, int64_t width) {
  return rank == 2 ? shape_of(4, batch, channels, height, width) : shape_of(3, batch, channels, width);
}

/* Padding that leaves something of a transposed convolution. */
static int64_t transposed_padding(struct lab *lab, const struct along *along) {
  int64_t reach = along->dilation * (along->kernel - 1), whole = (along->extent - 1) * along->stride + reach;
  return lab_random(lab, (whole / 2 < reach ? whole / 2 : reach) + 1);
}

/* s, x, out, kernel, stride, padding and, of grouped ones, dilation, groups. */
static void layer(struct lab *lab, int rank, bool grouped, bool transposed) {
  struct along along = random_along(lab, grouped ? 2 : 1);
  if (transposed) along.padding = transposed_padding(lab, &along);
  int64_t groups = grouped ? 1 + lab_random(lab, 3) : 1;
  lab_scope(lab);
  lab_tensor(lab,
             image(1 + lab_random(lab, 2), groups * (1 + lab_random(lab, 2)), rank, along.extent + lab_random(lab, 3),
                   along.extent),
             AROUND_ZERO);
  lab_int(lab, groups * (1 + lab_random(lab, 3)));
  lab_int(lab, along.kernel);
  lab_int(lab, along.stride);
  lab_int(lab, along.padding);
  if (grouped) lab_int(lab, along.dilation);
  if (grouped) lab_int(lab, groups);
}

static void signal(struct lab *lab) {
  layer(lab, 1, false, false);
}

static void signal_grouped(struct lab *lab) {
  layer(lab, 1, true, false);
}

static void picture(struct lab *lab) {
  layer(lab, 2, false, false);
}

static void picture_grouped(struct lab *lab) {
  layer(lab, 2, true, false);
}

static void signal_up(struct lab *lab) {
  layer(lab, 1, false, true);
}

static void picture_up(struct lab *lab) {
  layer(lab, 2, false, true);
}

/* x, weight, stride, padding, (output padding,) dilation, groups */
static void weighted(struct lab *lab, int rank, bool transposed) {
  struct along along = random_along(lab, 2);
  int64_t groups = 1 + lab_random(lab, 2), in = groups * (1 + lab_random(lab, 2));
  int64_t out = groups * (1 + lab_random(lab, 2));
  lab_tensor(lab, image(1 + lab_random(lab, 2), in, rank, along.extent + lab_random(lab, 3), along.extent),
             AROUND_ZERO);
  lab_tensor(lab,
             transposed ? image(in, out / groups, rank, along.kernel, along.kernel)
                        : image(out, in / groups, rank, along.kernel, along.kernel),
             AROUND_ZERO);
  lab_int(lab, along.stride);
  if (transposed) along.padding = transposed_padding(lab, &along);
  lab_int(lab, along.padding);
  if (transposed) lab_int(lab, lab_random(lab, along.stride));
  lab_int(lab, along.dilation);
  lab_int(lab, groups);
}

static void signal_weighted(struct lab *lab) {
  weighted(lab, 1, false);
}

static void picture_weighted(struct lab *lab) {
  weighted(lab, 2, false);
}

static void signal_transposed(struct lab *lab) {
  weighted(lab, 1, true);
}

static void picture_transposed(struct lab *lab) {
  weighted(lab, 2, true);
}

/* x, weight, then stride, padding and dilation of height and width each, groups */
static void weighted_in_pairs(struct lab *lab) {
  struct along height = random_along(lab, 3), width = random_along(lab, 3);
  lab_tensor(lab, shape_of(4, (int64_t)2, (int64_t)3, height.extent, width.extent), AROUND_ZERO);
  lab_tensor(lab, shape_of(4, (int64_t)2, (int64_t)3, height.kernel, width.kernel), AROUND_ZERO);
  lab_int(lab, height.stride);
  lab_int(lab, width.stride);
  lab_int(lab, height.padding);
  lab_int(lab, width.padding);
  lab_int(lab, height.dilation);
  lab_int(lab, width.dilation);
  lab_int(lab, 1);
}

/* ---- Norms ---- */

static void batch(struct lab *lab) {
  struct shape shape = shape_of(2, 2 + lab_random(lab, 3), lab_extent(lab));
  for (int64_t more = lab_random(lab, 3); more > 0; more--) shape.dim[shape.rank++] = 1 + lab_random(lab, 4);
  lab_scope(lab);
  lab_tensor(lab, shape, AROUND_ZERO);
}

static void batch_with(struct lab *lab) {
  batch(lab);
  lab_real(lab, 0.1);
  lab_real(lab, 0.3);
}

static void grouped(struct lab *lab) {
  int64_t groups = 1 + lab_random(lab, 3);
  struct shape shape = shape_of(2, 1 + lab_random(lab, 3), groups * (1 + lab_random(lab, 3)));
  for (int64_t more = 1 + lab_random(lab, 2); more > 0; more--) shape.dim[shape.rank++] = 2 + lab_random(lab, 3);
  lab_scope(lab);
  lab_tensor(lab, shape, AROUND_ZERO);
  lab_int(lab, groups);
}

static void grouped_eps(struct lab *lab) {
  grouped(lab);
  lab_real(lab, 0.1);
}

/* ---- Windows and sizes ---- */

/* x, kernel, stride, padding; elements that differ by more than central differences move them. */
static void pooled(struct lab *lab, int rank, bool largest) {
  struct along along = random_along(lab, 1);
  if (2 * along.padding > along.kernel) along.padding = along.kernel / 2;
  int64_t width = along.extent + along.kernel;
  struct shape x = image(1 + lab_random(lab, 2), 1 + lab_random(lab, 2), rank, width + lab_random(lab, 3), width);
  if (largest)
    lab_apart(lab, x);
  else
    lab_tensor(lab, x, AROUND_ZERO);
  lab_int(lab, along.kernel);
  lab_int(lab, along.stride);
  lab_int(lab, along.padding);
}

static void signal_largest(struct lab *lab) {
  pooled(lab, 1, true);
}

static void picture_largest(struct lab *lab) {
  pooled(lab, 2, true);
}

static void signal_pooled(struct lab *lab) {
  pooled(lab, 1, false);
}

static void picture_pooled(struct lab *lab) {
  pooled(lab, 2, false);
}

static void resized(struct lab *lab, int rank) {
  lab_tensor(
      lab, image(1 + lab_random(lab, 2), 1 + lab_random(lab, 2), rank, 1 + lab_random(lab, 7), 1 + lab_random(lab, 7)),
      AROUND_ZERO);
  for (int i = 0; i < rank; i++) lab_int(lab, 1 + lab_random(lab, 9));
}

static void signal_resized(struct lab *lab) {
  resized(lab, 1);
}

static void picture_resized(struct lab *lab) {
  resized(lab, 2);
}

const struct op_case image_cases[] = {
    {"conv1d", signal},
    {"conv1d_no_bias", signal},
    {"conv1d_grouped", signal_grouped},
    {"conv1d_grouped_no_bias", signal_grouped},
    {"conv2d", picture},
    {"conv2d_no_bias", picture},
    {"conv2d_grouped", picture_grouped},
    {"conv2d_grouped_no_bias", picture_grouped},
    {"conv_transpose1d", signal_up},
    {"conv_transpose2d", picture_up},
    {"convolve1d", signal_weighted},
    {"convolve2d", picture_weighted},
    {"convolve2d_pairs", weighted_in_pairs},
    {"convolve_transposed1d", signal_transposed},
    {"convolve_transposed2d", picture_transposed},
    {"batch_norm", batch},
    {"batch_norm_with", batch_with},
    {"group_norm", grouped},
    {"group_norm_eps", grouped_eps},
    {"max_pool1d", signal_largest},
    {"max_pool2d", picture_largest},
    {"avg_pool1d", signal_pooled},
    {"avg_pool2d", picture_pooled},
    {"adaptive_avg_pool1d", signal_resized},
    {"adaptive_avg_pool2d", picture_resized},
    {"interpolate_nearest", picture_resized},
    {"interpolate_bilinear", picture_resized},
    {"interpolate_bilinear_corners", picture_resized},
    {0},
};
