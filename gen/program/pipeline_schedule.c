#include "gen/program/pipeline_schedule.h"

int64_t schedule_number(const struct schedule *schedule, struct schedule_number number, int64_t rank) {
  return number.constant + number.ahead * schedule->ahead[rank];
}

struct stage_work schedule_work(const struct schedule *schedule, enum stage_action kind, int64_t rank, int64_t n) {
  const int64_t ranks = schedule->chunks > 1 ? schedule->ranks : 1;
  int64_t chunk = n / ranks % schedule->chunks;
  if (kind != ACTION_FORWARD) chunk = schedule->chunks - 1 - chunk;
  return (struct stage_work){.stage = chunk * schedule->ranks + rank,
                             .micro_batch = n / (ranks * schedule->chunks) * ranks + n % ranks};
}

void schedule_follow(const struct schedule *schedule, int64_t rank,
                     void (*visit)(void *context, enum stage_action kind, struct stage_work work), void *context) {
  for (int l = 0; l < schedule->n_loops; l++) {
    const struct schedule_loop *loop = &schedule->loops[l];
    const int64_t end = schedule_number(schedule, loop->end, rank);
    for (int64_t i = schedule_number(schedule, loop->first, rank); i < end; i++)
      for (int a = 0; a < loop->n_actions; a++) {
        const enum stage_action kind = loop->actions[a].kind;
        const int64_t n = i - schedule_number(schedule, loop->actions[a].shift, rank);
        visit(context, kind, schedule_work(schedule, kind, rank, n));
      }
  }
}
