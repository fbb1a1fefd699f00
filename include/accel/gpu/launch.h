/* Launch: how kernels of a program are put into a stream. For C++ that nvcc or hipcc compiles. */
#ifndef ACCEL_GPU_LAUNCH_H
#define ACCEL_GPU_LAUNCH_H

#ifdef __HIP__
#include "hip.h"
#else
#include <cuda_runtime.h>
#endif

#include "device.h"

/* accel_launch(kernel, grid, block, arguments ...): into the compute stream; the arguments are converted to the
 * kernel's parameters. Ends the process with a message when the launch is refused. accel_launch_in names another stream
 * first. */
#define accel_launch(...) accel_launch_at(__FILE__, __LINE__, #__VA_ARGS__, ACCEL_COMPUTE, __VA_ARGS__)
#define accel_launch_in(stream, ...) accel_launch_at(__FILE__, __LINE__, #__VA_ARGS__, stream, __VA_ARGS__)

template <typename... parameters, typename... types>
static inline void accel_launch_at(const char *file, int line, const char *call, enum accel_stream_name stream,
                                   void (*kernel)(parameters...), dim3 grid, dim3 block, types... arguments) {
  kernel<<<grid, block, 0, accel_gpu_stream(stream)>>>(static_cast<parameters>(arguments)...);
  accel_gpu_launched(call, file, line);
}

#endif
