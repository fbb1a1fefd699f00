#include "runtime/run/cadences.h"

/* Steps after `at` until the cadence is due; within a period, so that a huge cadence cannot overflow. */
static int64_t steps_until(struct cadence cadence, int64_t at) {
  int64_t within = at % cadence.steps, part = within * cadence.parts / cadence.steps + 1;
  int64_t end = part * cadence.steps / cadence.parts + (part * cadence.steps % cadence.parts != 0);
  return end - within;
}

static struct cadence every(int64_t steps) {
  return (struct cadence){steps, 1};
}

static bool is_due(struct cadence cadence, int64_t at) {
  return cadence.steps > 0 && at > 0 && steps_until(cadence, at - 1) == 1;
}

static int64_t sooner(int64_t next, int64_t at, struct cadence cadence) {
  if (cadence.steps <= 0) return next;
  int64_t until = steps_until(cadence, at);
  return until < next - at ? at + until : next;
}

int64_t rt_events_next(const struct cadences *cadences, int64_t at) {
  if (at == 0 && cadences->steps > 0) return 1;
  int64_t next = sooner(cadences->steps, at, every(cadences->log_every));
  next = sooner(next, at, cadences->log_epochs);
  next = sooner(next, at, every(cadences->eval_every));
  next = sooner(next, at, cadences->eval_epochs);
  next = sooner(next, at, every(cadences->hook_every));
  next = sooner(next, at, cadences->hook_epochs);
  next = sooner(next, at, every(cadences->mean_every));
  next = sooner(next, at, cadences->save_epochs);
  return sooner(next, at, every(cadences->save_every));
}

static bool is_delayed(const struct cadences *cadences, int64_t at) {
  const struct cadence epochs = cadences->eval_delay_epochs;
  return at < cadences->eval_delay || (epochs.steps > 0 && at < steps_until(epochs, 0));
}

bool rt_events_eval(const struct cadences *cadences, int64_t at) {
  if (cadences->eval_every <= 0 && cadences->eval_epochs.steps <= 0) return false;
  if (at == cadences->steps) return true;
  bool due = is_due(every(cadences->eval_every), at) || is_due(cadences->eval_epochs, at);
  return due && !is_delayed(cadences, at);
}

bool rt_events_epoch(const struct cadences *cadences, int64_t at) {
  return is_due(cadences->epoch, at);
}

bool rt_events_mean(const struct cadences *cadences, int64_t at) {
  return is_due(every(cadences->mean_every), at);
}

bool rt_events_save(const struct cadences *cadences, int64_t at) {
  return at == cadences->steps || is_due(every(cadences->save_every), at) || is_due(cadences->save_epochs, at);
}

bool rt_events_line(const struct cadences *cadences, int64_t at) {
  if (is_due(every(cadences->log_every), at) || is_due(cadences->log_epochs, at)) return true;
  return (at == 1 && cadences->log_first) || rt_events_eval(cadences, at) || rt_events_save(cadences, at);
}
