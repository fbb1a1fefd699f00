#include "tests/ops/cases.h"

/* ---- Convolutions ---- */

/* What a convolution along one axis is given: x, and a kernel that fits on it. */
struct along {
  int64_t extent, kernel, stride, padding, dilation;
};

static struct along random_along(struct fixture *fixture, int64_t dilations) {
  struct along along = {.kernel = 1 + fixture_random(fixture, 3), .stride = 1 + fixture_random(fixture, 3)};
  along.dilation = 1 + fixture_random(fixture, dilations);
  along.padding = fixture_random(fixture, along.kernel);
  int64_t reach = (along.kernel - 1) * along.dilation + 1 - 2 * along.padding;
  along.extent = (reach > 1 ? reach : 1) + fixture_random(fixture, 5);
  return along;
}

static struct shape image(int64_t batch, int64_t channels, int rank, int64_t height, int64_t width) {
  return rank == 2 ? shape_of(4, batch, channels, height, width) : shape_of(3, batch, channels, width);
}

/* Padding that leaves something of a transposed convolution. */
static int64_t transposed_padding(struct fixture *fixture, const struct along *along) {
  int64_t reach = along->dilation * (along->kernel - 1), whole = (along->extent - 1) * along->stride + reach;
  return fixture_random(fixture, (whole / 2 < reach ? whole / 2 : reach) + 1);
}

/* s, x, out, kernel, stride, padding and, of grouped ones, dilation, groups. */
static void layer(struct fixture *fixture, int rank, bool grouped, bool transposed) {
  struct along along = random_along(fixture, grouped ? 2 : 1);
  if (transposed) along.padding = transposed_padding(fixture, &along);
  int64_t groups = grouped ? 1 + fixture_random(fixture, 3) : 1;
  fixture_scope(fixture);
  fixture_tensor(fixture,
                 image(1 + fixture_random(fixture, 2), groups * (1 + fixture_random(fixture, 2)), rank,
                       along.extent + fixture_random(fixture, 3), along.extent),
                 AROUND_ZERO);
  fixture_int(fixture, groups * (1 + fixture_random(fixture, 3)));
  fixture_int(fixture, along.kernel);
  fixture_int(fixture, along.stride);
  fixture_int(fixture, along.padding);
  if (grouped) fixture_int(fixture, along.dilation);
  if (grouped) fixture_int(fixture, groups);
}

static void signal(struct fixture *fixture) {
  layer(fixture, 1, false, false);
}

static void signal_grouped(struct fixture *fixture) {
  layer(fixture, 1, true, false);
}

static void picture(struct fixture *fixture) {
  layer(fixture, 2, false, false);
}

static void picture_grouped(struct fixture *fixture) {
  layer(fixture, 2, true, false);
}

static void signal_up(struct fixture *fixture) {
  layer(fixture, 1, false, true);
}

static void picture_up(struct fixture *fixture) {
  layer(fixture, 2, false, true);
}

/* x, weight, stride, padding, (output padding,) dilation, groups */
static void weighted(struct fixture *fixture, int rank, bool transposed) {
  struct along along = random_along(fixture, 2);
  int64_t groups = 1 + fixture_random(fixture, 2), in = groups * (1 + fixture_random(fixture, 2));
  int64_t out = groups * (1 + fixture_random(fixture, 2));
  fixture_tensor(
      fixture, image(1 + fixture_random(fixture, 2), in, rank, along.extent + fixture_random(fixture, 3), along.extent),
      AROUND_ZERO);
  fixture_tensor(fixture,
                 transposed ? image(in, out / groups, rank, along.kernel, along.kernel)
                            : image(out, in / groups, rank, along.kernel, along.kernel),
                 AROUND_ZERO);
  fixture_int(fixture, along.stride);
  if (transposed) along.padding = transposed_padding(fixture, &along);
  fixture_int(fixture, along.padding);
  if (transposed) fixture_int(fixture, fixture_random(fixture, along.stride));
  fixture_int(fixture, along.dilation);
  fixture_int(fixture, groups);
}

static void signal_weighted(struct fixture *fixture) {
  weighted(fixture, 1, false);
}

static void picture_weighted(struct fixture *fixture) {
  weighted(fixture, 2, false);
}

static void signal_transposed(struct fixture *fixture) {
  weighted(fixture, 1, true);
}

static void picture_transposed(struct fixture *fixture) {
  weighted(fixture, 2, true);
}

/* x, weight, then stride, padding and dilation of height and width each, groups */
static void weighted_in_pairs(struct fixture *fixture) {
  struct along height = random_along(fixture, 3), width = random_along(fixture, 3);
  fixture_tensor(fixture, shape_of(4, (int64_t)2, (int64_t)3, height.extent, width.extent), AROUND_ZERO);
  fixture_tensor(fixture, shape_of(4, (int64_t)2, (int64_t)3, height.kernel, width.kernel), AROUND_ZERO);
  fixture_int(fixture, height.stride);
  fixture_int(fixture, width.stride);
  fixture_int(fixture, height.padding);
  fixture_int(fixture, width.padding);
  fixture_int(fixture, height.dilation);
  fixture_int(fixture, width.dilation);
  fixture_int(fixture, 1);
}

/* ---- Norms ---- */

static void batch(struct fixture *fixture) {
  struct shape shape = shape_of(2, 2 + fixture_random(fixture, 3), fixture_extent(fixture));
  for (int64_t more = fixture_random(fixture, 3); more > 0; more--)
    shape.dim[shape.rank++] = 1 + fixture_random(fixture, 4);
  fixture_scope(fixture);
  fixture_tensor(fixture, shape, AROUND_ZERO);
}

static void batch_with(struct fixture *fixture) {
  batch(fixture);
  fixture_real(fixture, 0.1);
  fixture_real(fixture, 0.3);
}

static void grouped(struct fixture *fixture) {
  int64_t groups = 1 + fixture_random(fixture, 3);
  struct shape shape = shape_of(2, 1 + fixture_random(fixture, 3), groups * (1 + fixture_random(fixture, 3)));
  for (int64_t more = 1 + fixture_random(fixture, 2); more > 0; more--)
    shape.dim[shape.rank++] = 2 + fixture_random(fixture, 3);
  fixture_scope(fixture);
  fixture_tensor(fixture, shape, AROUND_ZERO);
  fixture_int(fixture, groups);
}

static void grouped_eps(struct fixture *fixture) {
  grouped(fixture);
  fixture_real(fixture, 0.1);
}

/* ---- Windows and sizes ---- */

/* x, kernel, stride, padding; elements that differ by more than central differences move them. */
static void pooled(struct fixture *fixture, int rank, bool largest) {
  struct along along = random_along(fixture, 1);
  if (2 * along.padding > along.kernel) along.padding = along.kernel / 2;
  int64_t width = along.extent + along.kernel;
  struct shape x = image(1 + fixture_random(fixture, 2), 1 + fixture_random(fixture, 2), rank,
                         width + fixture_random(fixture, 3), width);
  if (largest)
    fixture_apart(fixture, x);
  else
    fixture_tensor(fixture, x, AROUND_ZERO);
  fixture_int(fixture, along.kernel);
  fixture_int(fixture, along.stride);
  fixture_int(fixture, along.padding);
}

static void signal_largest(struct fixture *fixture) {
  pooled(fixture, 1, true);
}

static void picture_largest(struct fixture *fixture) {
  pooled(fixture, 2, true);
}

static void signal_pooled(struct fixture *fixture) {
  pooled(fixture, 1, false);
}

static void picture_pooled(struct fixture *fixture) {
  pooled(fixture, 2, false);
}

static void resized(struct fixture *fixture, int rank) {
  fixture_tensor(fixture,
                 image(1 + fixture_random(fixture, 2), 1 + fixture_random(fixture, 2), rank,
                       1 + fixture_random(fixture, 7), 1 + fixture_random(fixture, 7)),
                 AROUND_ZERO);
  for (int i = 0; i < rank; i++) fixture_int(fixture, 1 + fixture_random(fixture, 9));
}

static void signal_resized(struct fixture *fixture) {
  resized(fixture, 1);
}

static void picture_resized(struct fixture *fixture) {
  resized(fixture, 2);
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
