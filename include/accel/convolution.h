/* Convolutions of images, by oneDNN: an emitted program states the shape of each once, opens all of them at its start,
 * and runs them without allocating (but for what oneDNN's own calls take). Images are [batch][channels][height][width]
 * and weights [y_channels][x_channels / groups][height][width], row-major as PyTorch has them; oneDNN may want them in
 * another order or type and then gets copies.
 *
 * accel_convolve does not report failures itself: accel_onednn_status reports what went wrong in a step. */
#ifndef ACCEL_CONVOLUTION_H
#define ACCEL_CONVOLUTION_H

#include "gemm.h"

/* What is made of the other two: y of x and the weights, x's gradient of y's and the weights, or the weights' gradient
 * of y's and x. */
enum accel_made { ACCEL_MAKES_Y, ACCEL_MAKES_X, ACCEL_MAKES_WEIGHTS };

/* Pairs are of height and width. Position i of y sees the positions i stride - padding + k dilation of x. */
struct accel_convolution {
  enum accel_made makes;
  enum accel_element type, result; /* of what is read; of what is made */
  bool accumulate;
  bool one_thread; /* the same bits for any number of threads */
  int64_t batch, groups, x_channels, y_channels;
  int64_t x[2], kernel[2], y[2];
  int64_t stride[2], padding[2], dilation[2];
  int64_t workspace;               /* floats */
  struct accel_prepared *prepared; /* the runtime's own */
};

/* Makes a convolution ready. Ends the process with a message when oneDNN fails or when memory is short: where the
 * workspace is too small, one is allocated here. Returns whether it runs as it is meant to: on instructions for its
 * type; false: on copies in float32. */
bool accel_open_convolution(struct accel_convolution *convolution);

/* to = or += what the convolution makes. For y: x and weights. For x: dy and weights. For weights: dy and x. */
void accel_convolve(const struct accel_convolution *convolution, void *to, const void *a, const void *b,
                    float *workspace);

#endif
