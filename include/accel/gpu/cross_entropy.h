/* What the forms of cross-entropy do with a row of logits, by a block of 256 threads. For C++ that nvcc or hipcc
 * compiles. */
#ifndef ACCEL_GPU_CROSS_ENTROPY_H
#define ACCEL_GPU_CROSS_ENTROPY_H

#include <stdint.h>

#include "functions.h"
#include "group.h"
#include "pack.h"

/* Of a row: the largest logit, ln of the sum of e^(logit - top), and with smooth labels the sum of top - logit. */
struct accel_row_sums {
  float top, rest, below;
};

/* Those of z[classes], which where it is packed begins at a multiple of 16 bytes. All threads get them. */
template <size_t classes, bool packed, bool smooth, typename type>
__device__ inline accel_row_sums accel_sum_row(const type *z) {
  constexpr int width = 16 / sizeof(type);
  constexpr size_t whole = packed ? classes / width * width : 0;
  float highest = -INFINITY, sum = 0.0f, all = 0.0f;
  if constexpr (whole > 0)
    for (size_t at = threadIdx.x * width; at < whole; at += 256 * width) {
      const accel_pack<type, width> pack = accel_load<width>(z + at);
      float values[width];
#pragma unroll
      for (int e = 0; e < width; e++) {
        values[e] = accel_float(pack.items[e]);
        if (smooth) all += values[e];
      }
      accel_log_sum_add<width>(&highest, &sum, values);
    }
  for (size_t v = whole + threadIdx.x; v < classes; v += 256) {
    const float value = accel_float(z[v]);
    accel_log_sum_add<1>(&highest, &sum, &value);
    if (smooth) all += value;
  }
  const float top = accel_highest<256>(highest);
  const float rest = logf(accel_sum<256>(highest > -INFINITY ? sum * expf(highest - top) : sum));
  return {top, rest, smooth ? (float)classes * top - accel_sum<256>(all) : 0.0f};
}

/* The row becomes its gradient, scale e^(z - lse) - even, less `hit` at the label, which is `classes` where none
 * counts. It begins at a multiple of 16 bytes. */
template <size_t classes, typename type>
__device__ inline void accel_slopes_in_place(type *z, size_t label, float lse, float scale, float even, float hit) {
  constexpr int width = 16 / sizeof(type);
  constexpr size_t whole = classes / width * width;
  /* From the row's end, of which the caches still hold most. */
  if constexpr (whole > 0)
    for (size_t back = threadIdx.x * width; back < whole; back += 256 * width) {
      const size_t at = whole - width - back;
      accel_pack<type, width> pack = accel_load<width>(z + at);
#pragma unroll
      for (int e = 0; e < width; e++) {
        const float slope = scale * accel_exp(accel_float(pack.items[e]) - lse) - even;
        accel_write<false>(&pack.items[e], at + e == label ? slope - hit : slope);
      }
      accel_store(z + at, pack);
    }
  for (size_t v = whole + threadIdx.x; v < classes; v += 256) {
    const float slope = scale * accel_exp(accel_float(z[v]) - lse) - even;
    accel_write<false>(z + v, v == label ? slope - hit : slope);
  }
}

/* The same into dz or added to it, which may be where z is, wherever these begin. */
template <size_t classes, bool add, typename type, typename slopes>
__device__ inline void accel_slopes(slopes *dz, const type *z, size_t label, float lse, float scale, float even,
                                    float hit) {
  for (size_t v = threadIdx.x; v < classes; v += 256) {
    const float slope = scale * accel_exp(accel_float(z[v]) - lse) - even;
    accel_write<add>(dz + v, v == label ? slope - hit : slope);
  }
}

/* Of the classes that a rank has of a row: ln of the sum of e^logit, and with smooth labels the sum of the logits. */
struct accel_part_sums {
  float lse, total;
};

/* Those of z[count]. All threads get them. */
template <bool smooth, typename type> __device__ inline accel_part_sums accel_sum_part(const type *z, size_t count) {
  float highest = -INFINITY, sum = 0.0f, all = 0.0f;
  for (size_t v = threadIdx.x; v < count; v += 256) {
    const float value = accel_float(z[v]);
    accel_log_sum_add<1>(&highest, &sum, &value);
    if (smooth) all += value;
  }
  const float top = accel_highest<256>(highest);
  const float rest = logf(accel_sum<256>(highest > -INFINITY ? sum * expf(highest - top) : sum));
  return {top + rest, smooth ? accel_sum<256>(all) : 0.0f};
}

/* The gradient of such a row into dz or added to it, which may be where z is: scale e^(z - lse) + even, and `hit`
 * more at the label, which is `classes` where it is another rank's; 0 from `valid` on, where classes are padding. */
template <size_t classes, bool add, typename type, typename slopes>
__device__ inline void accel_part_slopes(slopes *dz, const type *z, size_t valid, size_t label, float lse, float scale,
                                         float even, float hit) {
  for (size_t v = threadIdx.x; v < classes; v += 256) {
    const float slope = v < valid ? scale * accel_exp(accel_float(z[v]) - lse) + even : 0.0f;
    accel_write<add>(dz + v, v == label ? slope + hit : slope);
  }
}

/* loss = the mean of sums[rows] over the targets that are not `ignore`, as which a negative one has all negative ones;
 * scale = 1 / their number where with_scale. One block. */
template <size_t rows, int32_t ignore, bool with_scale>
__global__ void __launch_bounds__(1024)
    accel_mean_loss(const float *sums, float *loss, float *scale, const int32_t *targets) {
  double total = 0.0;
  int counted = 0;
  for (size_t r = threadIdx.x; r < rows; r += 1024) {
    const int32_t target = targets[r];
    total += sums[r];
    counted += ignore < 0 ? target >= 0 : target != ignore;
  }
  total = accel_sum<1024>(total);
  counted = accel_sum<1024>(counted);
  if (threadIdx.x > 0) return;
  if constexpr (with_scale) scale[0] = 1.0f / (float)counted;
  loss[0] = (float)(total / counted);
}

#endif
