#include "runtime/run/cadences.h"

static bool is_multiple(int64_t at, int64_t every) {
  return every > 0 && at > 0 && at % every == 0;
}

static int64_t sooner(int64_t next, int64_t at, int64_t every) {
  if (every <= 0) return next;
  int64_t until = every - at % every; /* added only when it fits, so a huge cadence cannot overflow */
  return until < next - at ? at + until : next;
}

int64_t rt_events_next(const struct cadences *cadences, int64_t at) {
  if (at == 0 && cadences->steps > 0) return 1;
  int64_t next = sooner(cadences->steps, at, cadences->log_every);
  next = sooner(next, at, cadences->eval_every);
  next = sooner(next, at, cadences->hook_every);
  next = sooner(next, at, cadences->mean_every);
  return sooner(next, at, cadences->save_every);
}

bool rt_events_eval(const struct cadences *cadences, int64_t at) {
  return cadences->eval_every > 0 && (at == cadences->steps || is_multiple(at, cadences->eval_every));
}

bool rt_events_mean(const struct cadences *cadences, int64_t at) {
  return is_multiple(at, cadences->mean_every);
}

bool rt_events_save(const struct cadences *cadences, int64_t at) {
  return at == cadences->steps || is_multiple(at, cadences->save_every);
}

bool rt_events_line(const struct cadences *cadences, int64_t at) {
  return is_multiple(at, cadences->log_every) || rt_events_eval(cadences, at) || rt_events_save(cadences, at);
}
