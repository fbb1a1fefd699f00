/* Numbers that the device has of gradients, for the log. */
#include "include/accel/gpu/device.h"
#include "runtime/base/problem.h"
#include "runtime/process/fail.h"

#include <stdlib.h>

void accel_gpu_log_gradients(struct accel_run *run, const double *squares, size_t count, double scale) {
  double *host = malloc(count * sizeof *host);
  if (host == NULL) {
    struct problem problem;
    rt_problem(&problem, "no memory for the norms of %zu gradients", count);
    rt_fail(&problem, 1);
  }
  accel_gpu_read(host, squares, count * sizeof *host);
  accel_log_gradient_norms(run, host, scale);
  free(host);
}

void accel_gpu_log_noise(struct accel_run *run, const float noise[2]) {
  float host[2];
  accel_gpu_read(host, noise, sizeof host);
  accel_log_noise(run, host);
}
