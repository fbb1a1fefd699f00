/* Convolutions by the program's own kernels: an element of what is made, whose sum has one order. For C++ that nvcc or
 * hipcc compiles.
 *
 * `shape` has what is constant: batch, groups, x_channels, y_channels, and height and width of x, kernel, y, stride,
 * padding and dilation, as NAME_height and NAME_width. Images are [batch][channels][height][width], weights
 * [y_channels][x_channels / groups][height][width]. */
#ifndef ACCEL_GPU_CONVOLVE_H
#define ACCEL_GPU_CONVOLVE_H

#include "functions.h"
#include "group.h"

/* What follows from a shape: elements of an image's channel and of a kernel, and channels of a group. */
template <typename shape> struct accel_convolved {
  static constexpr int x_area = shape::x_height * shape::x_width, y_area = shape::y_height * shape::y_width;
  static constexpr int kernel_area = shape::kernel_height * shape::kernel_width;
  static constexpr int ins = shape::x_channels / shape::groups, outs = shape::y_channels / shape::groups;
};

/* Element i of y = x convolved with weight. */
template <typename shape, typename type>
__device__ inline float accel_convolve_y(const type *x, const type *weight, size_t i) {
  typedef accel_convolved<shape> of;
  const int column = (int)(i % shape::y_width), row = (int)(i / shape::y_width % shape::y_height);
  const int o = (int)(i / of::y_area % shape::y_channels);
  const size_t n = i / (shape::y_channels * of::y_area);
  const type *from = x + (n * shape::x_channels + (size_t)(o / of::outs * of::ins)) * of::x_area;
  const type *kernel = weight + (size_t)o * (of::ins * of::kernel_area);
  float sum = 0.0f;
  for (int c = 0; c < of::ins; c++)
    for (int p = 0; p < shape::kernel_height; p++)
      for (int q = 0; q < shape::kernel_width; q++) {
        const int h = row * shape::stride_height - shape::padding_height + p * shape::dilation_height;
        const int w = column * shape::stride_width - shape::padding_width + q * shape::dilation_width;
        if (h < 0 || h >= shape::x_height || w < 0 || w >= shape::x_width) continue;
        sum += accel_float(from[(c * shape::x_height + h) * shape::x_width + w]) *
               accel_float(kernel[(c * shape::kernel_height + p) * shape::kernel_width + q]);
      }
  return sum;
}

/* Element i of dx = dy convolved back with weight. */
template <typename shape, typename type>
__device__ inline float accel_convolve_x(const type *dy, const type *weight, size_t i) {
  typedef accel_convolved<shape> of;
  const int w = (int)(i % shape::x_width), h = (int)(i / shape::x_width % shape::x_height);
  const int c = (int)(i / of::x_area % shape::x_channels);
  const size_t n = i / (shape::x_channels * of::x_area);
  const int first = c / of::ins * of::outs;
  float sum = 0.0f;
  for (int o = first; o < first + of::outs; o++)
    for (int p = 0; p < shape::kernel_height; p++)
      for (int q = 0; q < shape::kernel_width; q++) {
        const int down = h + shape::padding_height - p * shape::dilation_height;
        const int across = w + shape::padding_width - q * shape::dilation_width;
        if (down < 0 || across < 0) continue;
        const int row = down / shape::stride_height, column = across / shape::stride_width;
        if (row * shape::stride_height != down || column * shape::stride_width != across) continue;
        if (row >= shape::y_height || column >= shape::y_width) continue;
        sum += accel_float(dy[((n * shape::y_channels + o) * shape::y_height + row) * shape::y_width + column]) *
               accel_float(weight[((o * of::ins + c % of::ins) * shape::kernel_height + p) * shape::kernel_width + q]);
      }
  return sum;
}

/* Element blockIdx.x of dweight, what dy and x add up to at each position of the kernel, by a block of 256 threads. All
 * get it. */
template <typename shape, typename type> __device__ inline float accel_convolve_weights(const type *dy, const type *x) {
  typedef accel_convolved<shape> of;
  const int q = (int)(blockIdx.x % shape::kernel_width),
            p = (int)(blockIdx.x / shape::kernel_width % shape::kernel_height);
  const int c = (int)(blockIdx.x / of::kernel_area % of::ins);
  const int o = (int)(blockIdx.x / (of::ins * of::kernel_area)), channel = o / of::outs * of::ins + c;
  float sum = 0.0f;
  for (size_t i = threadIdx.x; i < (size_t)shape::batch * of::y_area; i += 256) {
    const int column = (int)(i % shape::y_width), row = (int)(i / shape::y_width % shape::y_height);
    const size_t n = i / of::y_area;
    const int h = row * shape::stride_height - shape::padding_height + p * shape::dilation_height;
    const int w = column * shape::stride_width - shape::padding_width + q * shape::dilation_width;
    if (h < 0 || h >= shape::x_height || w < 0 || w >= shape::x_width) continue;
    sum += accel_float(dy[(n * shape::y_channels + o) * of::y_area + i % of::y_area]) *
           accel_float(x[((n * shape::x_channels + channel) * shape::x_height + h) * shape::x_width + w]);
  }
  return accel_sum<256>(sum);
}

#endif
