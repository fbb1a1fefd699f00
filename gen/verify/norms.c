/* accel/model.h's normalizations. */
#include <math.h>

#include "gen/verify/layers.h"
#include "gen/verify/tape/elements.h"
#include "gen/verify/tape/tape.h"

/* (x - mean) / sqrt(variance + eps) of each row. */
static tensor standardized(tensor x, double eps) {
  const double share = 1 / (double)columns_of(x);
  tensor centered = sub(x, scale(row_sums(x), share));
  return mul(centered, rsqrt_of(shift(scale(row_sums(square(centered)), share), eps)));
}

tensor layer_norm_eps(scope s, tensor x, double eps) {
  tensor y = mul(standardized(x, eps), parameter_fixed(s, "weight", columns_of(x), true));
  return add(y, parameter_fixed(s, "bias", columns_of(x), false));
}

tensor layer_norm(scope s, tensor x) {
  return layer_norm_eps(s, x, 1e-5);
}

tensor layer_norm_no_bias(scope s, tensor x) {
  return mul(standardized(x, 1e-5), parameter_fixed(s, "weight", columns_of(x), true));
}

tensor rms_norm_eps(scope s, tensor x, double eps) {
  tensor squares = scale(row_sums(square(x)), 1 / (double)columns_of(x));
  return mul(mul(x, rsqrt_of(shift(squares, eps))), parameter_fixed(s, "weight", columns_of(x), true));
}

tensor rms_norm(scope s, tensor x) {
  return rms_norm_eps(s, x, 1e-6);
}

/* weight and bias of channels, [channels] as [channels][1]... of images of x's extents. */
static tensor by_channel(tensor of_channels, tensor x) {
  int64_t dim[MOST_AXES];
  for (int i = 0; i < x->rank; i++) dim[i] = i == 1 ? x->dim[1] : 1;
  return reshaped(of_channels, x->rank, dim);
}

static tensor scaled_channels(scope s, tensor y) {
  tensor weight = parameter_fixed(s, "weight", y->dim[1], true), bias = parameter_fixed(s, "bias", y->dim[1], false);
  return add(mul(y, by_channel(weight, y)), by_channel(bias, y));
}

tensor group_norm_eps(scope s, tensor x, int groups, double eps) {
  if (x->rank < 2 || groups < 1 || x->dim[1] % groups != 0) tape_refuse("group_norm: channels are not in such groups");
  const int64_t rows = x->dim[0] * groups, dim[] = {rows, x->count / rows};
  return scaled_channels(s, reshaped(standardized(reshaped(x, 2, dim), eps), x->rank, x->dim));
}

tensor group_norm(scope s, tensor x, int groups) {
  return group_norm_eps(s, x, groups, 1e-5);
}

/* Moves the statistics that evaluation takes: of the variance that of a sample. */
static void track(scope s, tensor mean, tensor variance, double count, double momentum) {
  tensor means = buffer_fixed(s, "running_mean", 1, mean->count, false);
  tensor variances = buffer_fixed(s, "running_var", 1, mean->count, true);
  tensor batches = buffer_fixed(s, "num_batches_tracked", 0, 1, false);
  for (int64_t c = 0; c < mean->count; c++) {
    double *m = &means->stored->values[c], *v = &variances->stored->values[c];
    *m = (1 - momentum) * *m + momentum * mean->values[c];
    *v = (1 - momentum) * *v + momentum * variance->values[c] * count / (count - 1);
  }
  batches->stored->values[0] += 1;
}

tensor batch_norm_with(scope s, tensor x, double eps, double momentum) {
  const int64_t channels = x->dim[1];
  const double among = (double)(x->count / channels);
  int64_t *places = tape_memory(x->count, sizeof *places);
  const int64_t inner = extent(x, 2, x->rank);
  for (int64_t i = 0; i < x->count; i++) places[i] = i / inner % channels;
  tensor mean = scale(drop(x, 1, &channels, places), 1 / among);
  tensor centered = sub(x, by_channel(mean, x));
  tensor variance = scale(drop(square(centered), 1, &channels, places), 1 / among);
  track(s, mean, variance, among, momentum);
  return scaled_channels(s, mul(centered, by_channel(rsqrt_of(shift(variance, eps)), x)));
}

tensor batch_norm(scope s, tensor x) {
  return batch_norm_with(s, x, 1e-5, 0.1);
}
