/* accel/images.h: layers over images and signals, a part of accel/model.h.
 *
 * Images are [batch][channels][height][width], signals [batch][channels][length], as PyTorch's. Kernels, strides and
 * what else is one number are the same along height and width. */
#ifndef ACCEL_IMAGES_H
#define ACCEL_IMAGES_H

#include <accel/model.h>

/* Convolution: weight [out][channels][kernel][kernel], bias [out]. Place i of the result sees the places
 * i stride - padding to i stride - padding + kernel - 1; around x there are zeros. */
tensor conv1d(scope s, tensor x, int out, int kernel, int stride, int padding);
tensor conv1d_no_bias(scope s, tensor x, int out, int kernel, int stride, int padding);
tensor conv2d(scope s, tensor x, int out, int kernel, int stride, int padding);
tensor conv2d_no_bias(scope s, tensor x, int out, int kernel, int stride, int padding);

/* With places of the kernel `dilation` apart, and channels in groups that do not see each other; with as many groups as
 * channels, each channel by itself. */
tensor conv1d_grouped(scope s, tensor x, int out, int kernel, int stride, int padding, int dilation, int groups);
tensor conv1d_grouped_no_bias(scope s, tensor x, int out, int kernel, int stride, int padding, int dilation,
                              int groups);
tensor conv2d_grouped(scope s, tensor x, int out, int kernel, int stride, int padding, int dilation, int groups);
tensor conv2d_grouped_no_bias(scope s, tensor x, int out, int kernel, int stride, int padding, int dilation,
                              int groups);

/* The transposed convolution, which widens by its stride: weight [channels][out][kernel][kernel]. Place i of x adds to
 * the places i stride - padding to i stride - padding + kernel - 1 of the result. */
tensor conv_transpose1d(scope s, tensor x, int out, int kernel, int stride, int padding);
tensor conv_transpose2d(scope s, tensor x, int out, int kernel, int stride, int padding);

/* Convolutions with a weight that is given, [out][channels / groups][...] or, transposed, [channels][out /
 * groups][...]: PyTorch's functional conv1d, conv2d, conv_transpose1d and conv_transpose2d. */
tensor convolve1d(tensor x, tensor weight, int stride, int padding, int dilation, int groups);
tensor convolve2d(tensor x, tensor weight, int stride, int padding, int dilation, int groups);
tensor convolve2d_pairs(tensor x, tensor weight, int stride_height, int stride_width, int padding_height,
                        int padding_width, int dilation_height, int dilation_width, int groups);
tensor convolve_transposed1d(tensor x, tensor weight, int stride, int padding, int output_padding, int dilation,
                             int groups);
tensor convolve_transposed2d(tensor x, tensor weight, int stride, int padding, int output_padding, int dilation,
                             int groups);

/* The largest, and the mean, of each window of kernel x kernel places, windows `stride` apart. Beyond the edges nothing
 * is largest, and there are zeros that count in the mean. */
tensor max_pool1d(tensor x, int kernel, int stride, int padding);
tensor max_pool2d(tensor x, int kernel, int stride, int padding);
tensor avg_pool1d(tensor x, int kernel, int stride, int padding);
tensor avg_pool2d(tensor x, int kernel, int stride, int padding);

/* The means of so many windows that cover all of x between them: adaptive_avg_pool2d(x, 1, 1) is the mean of each
 * channel. */
tensor adaptive_avg_pool1d(tensor x, int length);
tensor adaptive_avg_pool2d(tensor x, int height, int width);

/* An image at another size: each place that of the nearest place of x, or between its nearest places in both
 * directions; `corners`: the corner places of both images lie in the same places (align_corners). */
tensor interpolate_nearest(tensor x, int height, int width);
tensor interpolate_bilinear(tensor x, int height, int width);
tensor interpolate_bilinear_corners(tensor x, int height, int width);

/* Group normalisation of x [batch][channels][...] (arXiv:1803.08494): within each sample over each of `groups` groups
 * of neighbouring channels; weight and bias [channels], eps is 1e-5. */
tensor group_norm(scope s, tensor x, int groups);
tensor group_norm_eps(scope s, tensor x, int groups, double eps);

/* Batch normalisation of each channel, x [batch][channels][...] (arXiv:1502.03167): weight and bias [channels], and as
 * buffers, saved with the parameters under PyTorch's names, running_mean and running_var [channels], which each run in
 * training moves by `momentum` and which evaluation takes in place of the batch's, and num_batches_tracked. eps is
 * 1e-5, momentum 0.1. */
tensor batch_norm(scope s, tensor x);
tensor batch_norm_with(scope s, tensor x, double eps, double momentum);

#endif
