/* Device: what a run needs of the device that its program computes on. Programs for GPUs are linked with it
 * (runtime/cuda); in programs for processors its names stand for nothing. */
#ifndef RUNTIME_PROCESS_DEVICE_H
#define RUNTIME_PROCESS_DEVICE_H

#include "runtime/base/problem.h"

#include <stddef.h>

/* Whether this machine has one; false with a problem. */
extern bool rt_device_present(struct problem *problem) __attribute__((weak));

/* Copies `bytes` at `offset` of the device's arena, as the newest step left them, to `host`. Nothing where the device
 * does not mirror what is there. Waits. */
extern void rt_device_fetch(void *host, size_t offset, size_t bytes) __attribute__((weak));

/* Whether there is such a device to ask for; true in programs for processors. Before a run opens anything. */
static inline bool rt_device_is_there(struct problem *problem) {
  return rt_device_present == NULL || rt_device_present(problem);
}

/* Makes `bytes` at `at` of the host's arena, which begins at `arena`, what the newest step left there, for user code
 * between steps. Nothing where steps run in that arena, and where `at` is outside of it. */
static inline void rt_device_refresh(const void *arena, void *at, size_t bytes) {
  if (rt_device_fetch != NULL) rt_device_fetch(at, (size_t)((char *)at - (const char *)arena), bytes);
}

#endif
