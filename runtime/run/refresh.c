/* Steps run in the host's arena. */
#include "runtime/run/refresh.h"

void rt_refresh(const struct accel_run *run, void *at, size_t bytes) {
  (void)run;
  (void)at;
  (void)bytes;
}
