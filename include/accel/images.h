/* accel/images.h: layers over images and signals, a part of accel/model.h.
 *
 * Images are [batch][channels][height][width], signals [batch][channels][length], as PyTorch's. Kernels, strides and
 * what else is one number are the same along height and width. */
#ifndef ACCEL_IMAGES_H
#define ACCEL_IMAGES_H

#include <accel/model.h>

/* Convolution of signals: x [batch][channels][length] gives [batch][out][(length + 2 padding - kernel) / stride + 1],
 * with weight [out][channels][kernel], bias [out]. Position i of the result sees the positions
 * i stride - padding to i stride - padding + kernel - 1; around x there are zeros. */
tensor conv1d(scope s, tensor x, int out, int kernel, int stride, int padding);

/* The same without the bias. */
tensor conv1d_no_bias(scope s, tensor x, int out, int kernel, int stride, int padding);

/* Of images: x [batch][channels][height][width], weight [out][channels][kernel][kernel], bias [out]. */
tensor conv2d(scope s, tensor x, int out, int kernel, int stride, int padding);

/* The same without the bias. */
tensor conv2d_no_bias(scope s, tensor x, int out, int kernel, int stride, int padding);

/* With positions of the kernel `dilation` apart, and channels in groups that do not see each other; with as many groups
 * as channels, each channel separately. */
tensor conv1d_grouped(scope s, tensor x, int out, int kernel, int stride, int padding, int dilation, int groups);

/* The same without the bias. */
tensor conv1d_grouped_no_bias(scope s, tensor x, int out, int kernel, int stride, int padding, int dilation,
                              int groups);

/* The same of images: weight [out][channels / groups][kernel][kernel]. */
tensor conv2d_grouped(scope s, tensor x, int out, int kernel, int stride, int padding, int dilation, int groups);

/* The same without the bias. */
tensor conv2d_grouped_no_bias(scope s, tensor x, int out, int kernel, int stride, int padding, int dilation,
                              int groups);

/* The transposed convolution of signals, which widens by its stride: weight [channels][out][kernel], bias [out].
 * Position i of x adds to the positions i stride - padding to i stride - padding + kernel - 1 of the result. */
tensor conv_transpose1d(scope s, tensor x, int out, int kernel, int stride, int padding);

/* The same of images: weight [channels][out][kernel][kernel]. */
tensor conv_transpose2d(scope s, tensor x, int out, int kernel, int stride, int padding);

/* The convolution of signals with a weight that is given, [out][channels / groups][kernel]: PyTorch's functional
 * conv1d. Without a bias, as all that follow. */
tensor convolve1d(tensor x, tensor weight, int stride, int padding, int dilation, int groups);

/* Of images: weight [out][channels / groups][height][width]. Stride, padding and dilation are the same along both. */
tensor convolve2d(tensor x, tensor weight, int stride, int padding, int dilation, int groups);

/* The same with numbers of their own along height and width. */
tensor convolve2d_pairs(tensor x, tensor weight, int stride_height, int stride_width, int padding_height,
                        int padding_width, int dilation_height, int dilation_width, int groups);

/* PyTorch's functional conv_transpose1d: weight [channels][out / groups][kernel]; output_padding positions more at the
 * end. */
tensor convolve_transposed1d(tensor x, tensor weight, int stride, int padding, int output_padding, int dilation,
                             int groups);

/* The same of images: weight [channels][out / groups][height][width]. */
tensor convolve_transposed2d(tensor x, tensor weight, int stride, int padding, int output_padding, int dilation,
                             int groups);

/* The largest of each window of `kernel` positions, windows `stride` apart; beyond the edges nothing is largest. */
tensor max_pool1d(tensor x, int kernel, int stride, int padding);

/* The same of images, in windows of kernel x kernel positions. */
tensor max_pool2d(tensor x, int kernel, int stride, int padding);

/* The mean of each window; beyond the edges there are zeros that count in it. */
tensor avg_pool1d(tensor x, int kernel, int stride, int padding);

/* The same of images, in windows of kernel x kernel positions. */
tensor avg_pool2d(tensor x, int kernel, int stride, int padding);

/* The means of `length` windows that cover all of x between them. */
tensor adaptive_avg_pool1d(tensor x, int length);

/* The same of images: adaptive_avg_pool2d(x, 1, 1) is the mean of each channel. */
tensor adaptive_avg_pool2d(tensor x, int height, int width);

/* An image at another size: each position that of the nearest position of x. */
tensor interpolate_nearest(tensor x, int height, int width);

/* Each position from its nearest positions in both directions, weighted by their distance. */
tensor interpolate_bilinear(tensor x, int height, int width);

/* The same where the corners of both images have the same positions (align_corners). */
tensor interpolate_bilinear_corners(tensor x, int height, int width);

/* Group normalisation of x [batch][channels][...] (arXiv:1803.08494): within each sample over each of `groups` groups
 * of neighbouring channels; weight and bias [channels], eps is 1e-5. */
tensor group_norm(scope s, tensor x, int groups);

/* With this eps, above 0. */
tensor group_norm_eps(scope s, tensor x, int groups, double eps);

/* Batch normalisation of each channel, x [batch][channels][...] (arXiv:1502.03167): weight and bias [channels], and as
 * buffers, saved with the parameters under PyTorch's names, running_mean and running_var [channels], which each run in
 * training moves by `momentum` and which evaluation takes instead of the batch's, and num_batches_tracked. eps is
 * 1e-5, momentum 0.1. */
tensor batch_norm(scope s, tensor x);

/* With this eps, above 0, and this momentum, within 0 and 1. */
tensor batch_norm_with(scope s, tensor x, double eps, double momentum);

#endif
