#include "gen/plan/ranks/exposure.h"

#include <math.h>

#include "gen/plan/kernels/predict.h"
#include "gen/plan/ranks/cost.h"
#include "gen/plan/ranks/sequence.h"

struct clock {
  const struct program *program;
  const struct network *network;
  struct event_list events;
  struct exposure *exposures; /* by collective */
  double *ends;               /* by collective: when the newest of it has ended */
  const double *times;        /* by kernel */
  double scale;               /* seconds of one of them */
  double now, link;           /* the rank's time; when the link has sent what it was given */
};

/* How often a collective runs in a micro-batch of a kind. */
static double times_in(const struct clock *clock, const struct collective *collective, bool last) {
  int64_t micro_batches = clock->program->job->accumulation.num_steps;
  if (collective->times >= micro_batches) return (double)collective->times / (double)micro_batches;
  return last ? (double)collective->times : 0;
}

static double seconds_once(const struct clock *clock, int number) {
  const struct collective *collective = &clock->program->ranks.collectives.items[number];
  double every = collective->every > 1 ? (double)collective->every : 1;
  return collective_cost(clock->program, collective, clock->network).seconds / every;
}

static void begin(struct clock *clock, int number, bool last) {
  const struct collective *collective = &clock->program->ranks.collectives.items[number];
  double seconds = seconds_once(clock, number) * times_in(clock, collective, last);
  double from = collective->chained ? clock->ends[number - 1] : clock->now;
  clock->exposures[number].seconds += seconds;
  clock->ends[number] = from;
  if (seconds <= 0) return;
  clock->link = fmax(clock->link, from) + seconds;
  clock->ends[number] = clock->link;
}

static void await(struct clock *clock, int number) {
  double missing = clock->ends[number] - clock->now;
  if (missing <= 0) return;
  clock->exposures[number].waited += missing;
  clock->now += missing;
}

static void run_micro_batch(struct clock *clock, bool last) {
  const struct program *program = clock->program;
  for (int i = 0; i < clock->events.count; i++) {
    const struct event *event = &clock->events.items[i];
    if (event->kind == EVENT_RUN)
      clock->now += clock->scale * statement_time(program, clock->times, event->step);
    else if (event->kind == EVENT_BEGIN)
      begin(clock, event->collective, last);
    else
      await(clock, event->collective);
  }
}

/* What is in no micro-batch. */
static void run_step_end(struct clock *clock) {
  const struct program *program = clock->program;
  bool *within = arena_alloc(program->arena, ((size_t)program->ranks.collectives.count + 1) * sizeof *within);
  for (int i = 0; i < clock->events.count; i++)
    if (clock->events.items[i].kind == EVENT_BEGIN) within[clock->events.items[i].collective] = true;
  for (int i = 0; i < program->ranks.collectives.count; i++) {
    if (within[i]) continue;
    double seconds = seconds_once(clock, i) * (double)program->ranks.collectives.items[i].times;
    clock->exposures[i] = (struct exposure){seconds, seconds};
  }
}

/* Of all statements of a micro-batch. */
static double total_time(const struct clock *clock) {
  double total = 0;
  for (int i = 0; i < clock->events.count; i++)
    if (clock->events.items[i].kind == EVENT_RUN)
      total += statement_time(clock->program, clock->times, clock->events.items[i].step);
  return total;
}

const struct exposure *exposures_of(const struct program *program, const struct network *network) {
  struct clock clock = {.program = program, .network = network, .times = kernel_times(program)};
  size_t count = (size_t)program->ranks.collectives.count + 1;
  if (program->ranks.events != NULL) clock.events = *program->ranks.events;
  clock.exposures = arena_alloc(program->arena, count * sizeof *clock.exposures);
  clock.ends = arena_alloc(program->arena, count * sizeof *clock.ends);
  int64_t micro_batches = program->job->accumulation.num_steps;
  double total = total_time(&clock), kernels = network->step * kernel_fraction(program);
  clock.scale = total > 0 ? kernels / (double)micro_batches / total : 0;
  for (int64_t i = 0; i < micro_batches; i++) run_micro_batch(&clock, i + 1 == micro_batches);
  run_step_end(&clock);
  return clock.exposures;
}
