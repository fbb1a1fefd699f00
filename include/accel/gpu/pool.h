/* Pooling over windows of planes. For C++ that nvcc or hipcc compiles. */
#ifndef ACCEL_GPU_POOL_H
#define ACCEL_GPU_POOL_H

#include "functions.h"

/* The windows along an axis of `size` positions: `windows` of them, of `kernel` positions, `stride` apart, of which the
 * first begins `padding` before the axis. */
template <size_t size, size_t windows, size_t kernel, size_t stride, size_t padding> struct accel_windows {
  static constexpr size_t extent = size, count = windows, length = kernel, step = stride, before = padding;
};

/* The first position of window i on the axis, and the one after its last. */
template <typename of> __device__ inline size_t accel_window_begin(size_t i) {
  return i * of::step > of::before ? i * of::step - of::before : 0;
}
template <typename of> __device__ inline size_t accel_window_end(size_t i) {
  return i * of::step + of::length - of::before < of::extent ? i * of::step + of::length - of::before : of::extent;
}

/* The first window that has a position, and the one after the last that has it. */
template <typename of> __device__ inline size_t accel_first_window(size_t at) {
  return at + of::before + 1 > of::length ? (at + of::before + of::step - of::length) / of::step : 0;
}
template <typename of> __device__ inline size_t accel_last_window(size_t at) {
  return (at + of::before) / of::step + 1 < of::count ? (at + of::before) / of::step + 1 : of::count;
}

/* y[i] = the largest element of its window, or NaN if one of them is; y is [][down::count][across::count], and x
 * [][down::extent][across::extent]. */
template <typename down, typename across, typename result, typename type>
__device__ inline void accel_max_pool(result *y, const type *x, size_t i) {
  const size_t m = i / across::count % down::count, n = i % across::count;
  const type *plane = x + i / (down::count * across::count) * (down::extent * across::extent);
  float highest = -INFINITY;
  for (size_t row = accel_window_begin<down>(m); row < accel_window_end<down>(m); row++)
    for (size_t column = accel_window_begin<across>(n); column < accel_window_end<across>(n); column++) {
      const float at = accel_float(plane[row * across::extent + column]);
      highest = at > highest || at != at ? at : highest;
    }
  accel_put(y + i, highest);
}

/* dx[i] = the sum of dy over those of the windows that hold element i, in their order, of whose largest elements it is
 * the first; shapes as above. */
template <typename down, typename across, typename result, typename slope, typename type>
__device__ inline void accel_max_pool_backward(result *dx, const slope *dy, const type *x, size_t i) {
  constexpr size_t size = down::extent * across::extent;
  const size_t p = i / size, own = i % size, r = own / across::extent, c = own % across::extent;
  const type *plane = x + p * size;
  float sum = 0.0f;
  for (size_t m = accel_first_window<down>(r); m < accel_last_window<down>(r); m++)
    for (size_t n = accel_first_window<across>(c); n < accel_last_window<across>(c); n++) {
      size_t found = accel_window_begin<down>(m) * across::extent + accel_window_begin<across>(n);
      float highest = accel_float(plane[found]);
      for (size_t row = accel_window_begin<down>(m); row < accel_window_end<down>(m); row++)
        for (size_t column = accel_window_begin<across>(n); column < accel_window_end<across>(n); column++) {
          const float at = accel_float(plane[row * across::extent + column]);
          found = at > highest ? row * across::extent + column : found;
          highest = at > highest ? at : highest;
        }
      if (found == own) sum += accel_float(dy[(p * down::count + m) * across::count + n]);
    }
  accel_put(dx + i, sum);
}

#endif
