#include "runtime/report/stopwatch.h"

#include "runtime/base/clock.h"

void rt_stopwatch_start(struct stopwatch *watch) {
  watch->running = true;
  watch->started = rt_now();
}

void rt_stopwatch_stop(struct stopwatch *watch) {
  if (watch->running) watch->seconds += rt_now() - watch->started;
  watch->running = false;
}

void rt_stopwatch_count(struct stopwatch *watch, int64_t at) {
  watch->steps += at - watch->last_at;
  watch->last_at = at;
}

double rt_stopwatch_step(const struct stopwatch *watch) {
  return watch->steps > 0 ? watch->seconds / (double)watch->steps : 0;
}

double rt_stopwatch_pace(const struct stopwatch *watch) {
  return watch->steps > 0 ? rt_stopwatch_step(watch) : watch->pace;
}

void rt_stopwatch_reset(struct stopwatch *watch) {
  watch->pace = rt_stopwatch_pace(watch);
  watch->seconds = watch->waited = 0;
  watch->steps = 0;
}
