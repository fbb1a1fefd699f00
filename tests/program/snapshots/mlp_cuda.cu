/* mlp_table: the kernels of a training program, written by accel-gen 0.2.0. The host's half is the file of the same
 * name that ends with .c; functions that are extern "C" are called from there and put work into the compute stream. */
#include <accel/gpu/kernels.h>
#include <accel/gpu/step.h>
#include <assert.h>
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* The arrays that an update goes through, all on the device. */
struct arrays {
  float *all_weights, *all_gradients;
  float *moment_1;
  float *moment_2;
};

/* Where kernels keep partial sums: 4194304 floats. All run one after the other. */
static float *sums;
extern "C" void open_kernels(float *storage) {
  sums = storage;
}

/* ---- Kernels ---- */

namespace device {
template <int width> __global__ void __launch_bounds__(256) relu_3x7(float *y, const float *x) {
  const uint32_t first = (blockIdx.x * 256 + threadIdx.x) * width;
  if (first >= 21) return;
  const size_t i = first;
  const accel_pack<float, width> from0 = accel_load<width>(x + i);
  accel_pack<float, width> to0;
#pragma unroll
  for (int e = 0; e < width; e++) {
    const float v0 = from0.items[e];
    to0.items[e] = v0 < 0.0f ? 0.0f : v0;
  }
  accel_store(y, i, to0);
}
} // namespace device

extern "C" void relu_3x7(float *y, const float *x) {
  accel_launch(device::relu_3x7<1>, 1, 256, y, x);
}

/* loss = the mean of lse[r] - logits[r][targets[r]] over the targets that are not -100; lse = ln sum e^logits. A block
 * for each row. */
namespace device {
__global__ void __launch_bounds__(256)
    cross_entropy_3x3(float *sums, float *lse, const float *logits, const int32_t *targets) {
  const size_t r = blockIdx.x;
  const float *z = logits + r * 3;
  const accel_row_sums all = accel_sum_row<3, false, false>(z);
  if (threadIdx.x > 0) return;
  const int32_t target = targets[r];
  lse[r] = all.top + all.rest;
  sums[r] = target >= 0 ? (all.top - z[target]) + all.rest : 0.0f;
}
} // namespace device

extern "C" void cross_entropy_3x3(float *loss, float *lse, float *scale, const float *logits, const int32_t *targets) {
  accel_launch(device::cross_entropy_3x3, 3, 256, sums, lse, logits, targets);
  accel_launch(accel_mean_loss<3, -100, true>, 1, 1024, sums, loss, scale, targets);
}

namespace device {
template <int width>
__global__ void __launch_bounds__(256) relu_backward_3x7(float *y, const float *x0, const float *x1) {
  const uint32_t first = (blockIdx.x * 256 + threadIdx.x) * width;
  if (first >= 21) return;
  const size_t i = first;
  const accel_pack<float, width> from0 = accel_load<width>(x0 + i);
  const accel_pack<float, width> from1 = accel_load<width>(x1 + i);
  accel_pack<float, width> to0;
#pragma unroll
  for (int e = 0; e < width; e++) {
    to0.items[e] = from1.items[e] > 0.0f ? from0.items[e] : 0.0f;
  }
  accel_store(y, i, to0);
}
} // namespace device

extern "C" void relu_backward_3x7(float *y, const float *x0, const float *x1) {
  accel_launch(device::relu_backward_3x7<1>, 1, 256, y, x0, x1);
}

namespace device {
template <int width> __global__ void __launch_bounds__(256) constant_1(float *y) {
  const uint32_t first = (blockIdx.x * 256 + threadIdx.x) * width;
  if (first >= 1) return;
  accel_pack<float, width> to0;
#pragma unroll
  for (int e = 0; e < width; e++) {
    to0.items[e] = 1.0f;
  }
  accel_store(y, 0, to0);
}
} // namespace device

extern "C" void constant_1(float *y) {
  accel_launch(device::constant_1<1>, 1, 256, y);
}

/* dlogits = d_loss scale (e^(logits - lse) - 1 at the target); rows whose target is -100 are 0. */
namespace device {
__global__ void __launch_bounds__(256)
    cross_entropy_backward_1(float *dlogits, const float *d_loss, const float *logits, const float *lse,
                             const float *scale, const int32_t *targets) {
  const size_t r = blockIdx.x;
  const int32_t target = targets[r];
  const float factor = target >= 0 ? d_loss[0] * scale[0] : 0.0f, l = lse[r];
  const size_t label = target >= 0 ? (size_t)target : 3;
  accel_slopes<3, false>(dlogits + r * 3, logits + r * 3, label, l, factor, 0.0f, factor);
}
} // namespace device

extern "C" void cross_entropy_backward_1(float *dlogits, const float *d_loss, const float *logits, const float *lse,
                                         const float *scale, const int32_t *targets) {
  accel_launch(device::cross_entropy_backward_1, 3, 256, dlogits, d_loss, logits, lse, scale, targets);
}

/* ---- The end of a step ---- */

namespace device {
/* The same rate for all steps. */
static __device__ double learning_rate(void) {
  return 0.001;
}

/* What clips a gradient of this norm, in the arithmetic of PyTorch's clip_grad_norm_. */
static __device__ float clip_factor(double norm) {
  return (float)fmin(1.0 / (norm + 1e-6), 1.0);
}

/* The loss of the micro-batch at hand goes into the step's. */
__global__ void __launch_bounds__(1) note_loss(struct progress *progress, const float *result) {
  const double loss = result[0];
  progress->loss = progress->micro == 0 ? loss : progress->loss + loss;
  progress->micro++;
}

/* Adds up the squares of the gradients, in chunks, so that their sum is the same in every run. */
__global__ void __launch_bounds__(512) sum_squares(float *sums, const float *gradients) {
  accel_sum_chunk(sums, gradients, 192);
}

/* Prepares the update: the loss of the step, the norm of its gradient, whether there is an update, its learning rate
 * and factor; these are the report of the step, too. */
__global__ void __launch_bounds__(512) prepare_update(const float *sums, struct progress *progress) {
  const double squares = accel_sum_of_chunks(sums, 1);
  const double size = sqrt(squares);
  if (threadIdx.x > 0) return;
  const double loss = progress->loss / (double)progress->micro;
  struct step_report *report = &progress->report;
  report->at = progress->at;
  report->loss = loss;
  report->grad_norm = size;
  const int64_t count = progress->at;
  report->lr = learning_rate();
  if (!isfinite(loss) || !isfinite(report->grad_norm)) progress->stopped = 1;
  const bool finite = progress->stopped == 0 && isfinite(report->grad_norm);
  progress->factor = clip_factor(report->grad_norm);
  progress->lr = report->lr;
  progress->taken = count;
  progress->apply_update = finite;
  report->taken = finite;
  progress->at++;
  progress->micro = 0;
}

/* AdamW (Loshchilov, Hutter, arXiv:1711.05101) in PyTorch's arithmetic, in one sweep with the gradient's clipping. */
__global__ void __launch_bounds__(256) update(struct arrays arrays, const struct progress *progress) {
  const struct arrays *arena = &arrays;
  if (progress->apply_update == 0) return;
  const int64_t at = progress->taken;
  const double lr = progress->lr;
  const float factor = progress->factor;
  const double correction_1 = 1.0 - pow(0.9, (double)(at + 1));
  const double correction_2 = 1.0 - pow(0.95, (double)(at + 1));
  const float rate = (float)(lr / correction_1), root = (float)(1.0 / sqrt(correction_2));
  const float keep = (float)(1.0 - lr * 0.1);
  const float *__restrict__ gradients = arena->all_gradients;
  float *__restrict__ weights = arena->all_weights;
  float *__restrict__ moment_1 = arena->moment_1;
  float *__restrict__ moment_2 = arena->moment_2;
  for (size_t i = (size_t)blockIdx.x * 256 + threadIdx.x; i < 192; i += (size_t)gridDim.x * 256) {
    const float weight = weights[i];
    const float g = gradients[i] * factor;
    const float m = 0.9f * moment_1[i] + 0.1f * g;
    const float v = 0.95f * moment_2[i] + 0.05f * (g * g);
    moment_1[i] = m;
    moment_2[i] = v;
    const float w = weight * keep - rate * m / (sqrtf(v) * root + 1e-08f);
    weights[i] = w;
  }
}
} // namespace device

extern "C" void note_loss(struct progress *progress, const float *result) {
  accel_launch(device::note_loss, 1, 1, progress, result);
}

extern "C" void sum_squares(const float *gradients) {
  accel_launch(device::sum_squares, 1, 512, sums, gradients);
}

extern "C" void prepare_update(struct progress *progress) {
  accel_launch(device::prepare_update, 1, 512, sums, progress);
}

extern "C" void update(const struct arrays *arena, const struct progress *progress) {
  accel_launch(device::update, 1, 256, *arena, progress);
}
