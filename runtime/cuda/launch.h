/* Launch: how kernels of a program are put into the compute stream. For C++ that nvcc compiles. */
#ifndef ACCEL_CUDA_LAUNCH_H
#define ACCEL_CUDA_LAUNCH_H

#include <cuda_runtime.h>

#include "device.h"

/* accel_launch(kernel, grid, block, arguments ...): the arguments are converted to the kernel's parameters. Ends the
 * process with a message when the launch is refused. */
#define accel_launch(...) accel_launch_at(__FILE__, __LINE__, #__VA_ARGS__, __VA_ARGS__)

template <typename... parameters, typename... types>
static inline void accel_launch_at(const char *file, int line, const char *call, void (*kernel)(parameters...),
                                   dim3 grid, dim3 block, types... arguments) {
  kernel<<<grid, block, 0, accel_cuda_stream(ACCEL_COMPUTE)>>>(static_cast<parameters>(arguments)...);
  accel_cuda_launched(call, file, line);
}

#endif
