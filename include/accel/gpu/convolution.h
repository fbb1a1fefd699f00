/* Convolutions of images by cuDNN. Images are [batch][channels][height][width] and weights
 * [y_channels][x_channels / groups][height][width], row-major; cuDNN may want them in another order and then copies
 * them in the workspace. */
#ifndef ACCEL_GPU_CONVOLUTION_H
#define ACCEL_GPU_CONVOLUTION_H

#include "../convolution.h"
#include "device.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Pairs are of height and width. Position i of y sees the positions i stride - padding + k dilation of x. */
struct accel_gpu_convolution {
  const char *name; /* for messages */
  enum accel_made makes;
  enum accel_element type; /* of all three; sums are in float32 */
  bool tf32;               /* float32 is rounded to tf32 */
  bool accumulate;
  int64_t batch, groups, x_channels, y_channels;
  int64_t x[2], kernel[2], y[2];
  int64_t stride[2], padding[2], dilation[2];
  struct accel_gpu_engine *engine; /* the runtime's own */
};

/* Makes a convolution ready: the first engine of cuDNN's heuristic that fits the plan's workspace, does not round what
 * it reads or adds up (but to tf32, where that is asked for), and, with `deterministic` of the plan, gives the same
 * bits in every run. Ends the process with a message that names the convolution when there is none, and the job's
 * key by which the program's own kernel serves. */
void accel_gpu_open_convolution(struct accel_gpu_convolution *convolution);

/* Puts it into `stream`, the compute stream or one that never runs concurrently with it: to = or += what the
 * convolution makes. For y: x and weights. For x: dy and weights. For weights: dy and x. */
void accel_gpu_convolve(const struct accel_gpu_convolution *convolution, accel_stream stream, void *to, const void *a,
                        const void *b);

#ifdef __cplusplus
}
#endif

#endif
