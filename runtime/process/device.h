/* Device: what a run asks of the device that its program is for, before it opens anything. */
#ifndef ACCEL_PROCESS_DEVICE_H
#define ACCEL_PROCESS_DEVICE_H

#include "runtime/base/problem.h"

/* Whether this machine has one; false with a problem. Programs for GPUs are linked with it (runtime/cuda); in others
 * the name stands for nothing. */
extern bool rt_device_present(struct problem *problem) __attribute__((weak));

/* The same where there is such a device to ask for; true in programs for processors. */
static inline bool rt_device_is_there(struct problem *problem) {
  return rt_device_present == NULL || rt_device_present(problem);
}

#endif
