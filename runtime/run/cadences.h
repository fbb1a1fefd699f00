/* When something is due: cadences in steps, as pure functions. */
#ifndef RUNTIME_RUN_CADENCES_H
#define RUNTIME_RUN_CADENCES_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/data/accumulation.h"

/* In steps; a cadence of 0 or less is never. */
struct cadences {
  int64_t steps;
  int64_t log_every, eval_every, save_every;
  int64_t hook_every; /* user code sees these steps */
  int64_t mean_every; /* ranks average their weights */
  bool log_first;     /* the first step has a line */
  struct cadence log_epochs, eval_epochs, save_epochs, hook_epochs;
  int64_t eval_delay; /* steps without an evaluation, but for the last step */
  struct cadence eval_delay_epochs;
  struct cadence epoch; /* one; by itself no event */
};

/* The next step count above `at` at which something is due; `steps` at most. The first step counts too: the time to
 * it is measured. */
int64_t rt_events_next(const struct cadences *cadences, int64_t at);

/* Due at multiples of eval_every and by epochs, after the delays, and at the end. */
bool rt_events_eval(const struct cadences *cadences, int64_t at);

/* Whether an epoch ends there. */
bool rt_events_epoch(const struct cadences *cadences, int64_t at);

/* Due at multiples of mean_every. */
bool rt_events_mean(const struct cadences *cadences, int64_t at);

/* Due at multiples of save_every, by epochs, and at the end. */
bool rt_events_save(const struct cadences *cadences, int64_t at);

/* There is a line for every log cadence, evaluation and save, of the first step with log_first, and of the end. */
bool rt_events_line(const struct cadences *cadences, int64_t at);

#endif
