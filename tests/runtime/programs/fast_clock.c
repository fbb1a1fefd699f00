/* Preloaded, lets a second pass between any two looks at the clock: all work takes long. */
#define _GNU_SOURCE /* syscall */
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

int clock_gettime(clockid_t clock, struct timespec *time) {
  static long ahead;
  const long status = syscall(SYS_clock_gettime, clock, time);
  time->tv_sec += ++ahead;
  return (int)status;
}
