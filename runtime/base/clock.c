#define _DEFAULT_SOURCE /* CLOCK_BOOTTIME */
#include "runtime/base/clock.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* Time since boot, asleep or not: the clock of /proc/self/stat. */
#ifdef CLOCK_BOOTTIME
static const clockid_t clock_id = CLOCK_BOOTTIME;
#else
static const clockid_t clock_id = CLOCK_MONOTONIC;
#endif

double rt_now(void) {
  struct timespec time;
  clock_gettime(clock_id, &time);
  return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* Field 22 of proc(5)'s stat, in clock ticks; the name in field 2 may hold spaces and brackets. */
static bool read_start_ticks(unsigned long long *ticks) {
  char text[1024];
  FILE *file = fopen("/proc/self/stat", "r");
  if (file == NULL) return false;
  size_t length = fread(text, 1, sizeof text - 1, file);
  fclose(file);
  text[length] = '\0';
  const char *after_name = strrchr(text, ')');
  return after_name != NULL &&
         sscanf(after_name + 1, " %*c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %llu",
                ticks) == 1;
}

double rt_process_start(void) {
  double now = rt_now();
  unsigned long long ticks;
  long per_second = sysconf(_SC_CLK_TCK);
  if (per_second <= 0 || !read_start_ticks(&ticks)) return now;
  double start = (double)ticks / (double)per_second;
  /* A container may see another clock than its host's: believe nothing out of reason. */
  return start <= now && start > now - 60 ? start : now;
}

void rt_date_text(char text[RT_DATE_BYTES]) {
  const time_t now = time(NULL);
  struct tm calendar;
  gmtime_r(&now, &calendar);
  strftime(text, RT_DATE_BYTES, "%Y-%m-%d %H:%M:%S UTC", &calendar);
}
