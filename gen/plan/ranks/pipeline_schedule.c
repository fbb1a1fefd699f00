#include "gen/plan/ranks/pipeline_schedule.h"

/* Forwards alone, as many as a rank runs ahead; a forward and a backward in turn; the backwards that are left. */
static void set_loops(struct schedule *schedule) {
  const int64_t all = schedule->chunks * schedule->micro_batches;
  const struct schedule_number none = {0}, ahead = {.ahead = 1}, every = {.constant = all};
  schedule->loops[0] = (struct schedule_loop){
      .first = none, .end = ahead, .actions = {{ACTION_FORWARD, none}}, .n_actions = 1, .waits = !schedule->starts};
  schedule->loops[1] = (struct schedule_loop){
      .first = ahead, .end = every, .actions = {{ACTION_FORWARD, none}, {ACTION_BACKWARD, ahead}}, .n_actions = 2};
  schedule->loops[2] = (struct schedule_loop){
      .first = {.constant = all, .ahead = -1}, .end = every, .actions = {{ACTION_BACKWARD, none}}, .n_actions = 1};
  schedule->n_loops = 3;
}

/* As above, with gradients of weights as many micro-batches after the backward as a rank runs fewer forwards ahead than
 * the first one: each then holds as many micro-batches as that one. */
static void set_deferring_loops(struct schedule *schedule) {
  const int64_t all = schedule->micro_batches, most = schedule->ahead[0];
  const struct schedule_number none = {0}, ahead = {.ahead = 1}, every = {.constant = all}, window = {.constant = most};
  const struct schedule_number back = {.constant = all, .ahead = 1};
  schedule->loops[0] = (struct schedule_loop){
      .first = none, .end = ahead, .actions = {{ACTION_FORWARD, none}}, .n_actions = 1, .waits = !schedule->starts};
  schedule->loops[1] = (struct schedule_loop){
      .first = ahead, .end = window, .actions = {{ACTION_FORWARD, none}, {ACTION_BACKWARD, ahead}}, .n_actions = 2};
  schedule->loops[2] =
      (struct schedule_loop){.first = window,
                             .end = every,
                             .actions = {{ACTION_FORWARD, none}, {ACTION_BACKWARD, ahead}, {ACTION_DEFERRED, window}},
                             .n_actions = 3};
  schedule->loops[3] = (struct schedule_loop){
      .first = every, .end = back, .actions = {{ACTION_BACKWARD, ahead}, {ACTION_DEFERRED, window}}, .n_actions = 2};
  schedule->loops[4] = (struct schedule_loop){
      .first = back, .end = {.constant = all + most}, .actions = {{ACTION_DEFERRED, window}}, .n_actions = 1};
  schedule->n_loops = 5;
}

static int64_t forwards_ahead(const struct schedule *schedule, enum pp_schedule kind, int64_t rank) {
  const int64_t all = schedule->chunks * schedule->micro_batches, after = schedule->ranks - 1 - rank;
  if (kind == SCHEDULE_GPIPE) return all - 1;
  if (kind == SCHEDULE_1F1B || kind == SCHEDULE_ZERO_BUBBLE) return after < all ? after : all - 1;
  const int64_t ahead = 2 * after + (schedule->chunks - 1) * schedule->ranks;
  return ahead < all ? ahead : all;
}

struct schedule schedule_of(struct arena *arena, enum pp_schedule kind, int64_t ranks, int64_t chunks,
                            int64_t micro_batches) {
  struct schedule schedule = {.ranks = ranks, .chunks = chunks, .micro_batches = micro_batches};
  schedule.defers = kind == SCHEDULE_ZERO_BUBBLE;
  schedule.starts = kind == SCHEDULE_INTERLEAVED || schedule.defers;
  schedule.ahead = arena_alloc(arena, (size_t)ranks * sizeof *schedule.ahead);
  for (int64_t k = 0; k < ranks; k++) schedule.ahead[k] = forwards_ahead(&schedule, kind, k);
  if (schedule.defers)
    set_deferring_loops(&schedule);
  else
    set_loops(&schedule);
  return schedule;
}

struct counting {
  int64_t *in_flight, *slots; /* by stage: micro-batches in flight now, and at most */
  enum stage_action last;     /* after which it keeps nothing of one */
};

static void count(void *context, enum stage_action kind, struct stage_work work) {
  struct counting *counting = context;
  if (kind == ACTION_FORWARD) counting->in_flight[work.stage]++;
  if (kind == counting->last) counting->in_flight[work.stage]--;
  if (counting->in_flight[work.stage] > counting->slots[work.stage])
    counting->slots[work.stage] = counting->in_flight[work.stage];
}

int64_t *schedule_slots(struct arena *arena, const struct schedule *schedule) {
  const size_t stages = (size_t)(schedule->ranks * schedule->chunks);
  struct counting counting = {.in_flight = arena_alloc(arena, stages * sizeof *counting.in_flight),
                              .slots = arena_alloc(arena, stages * sizeof *counting.slots),
                              .last = schedule->defers ? ACTION_DEFERRED : ACTION_BACKWARD};
  for (int64_t k = 0; k < schedule->ranks; k++) schedule_follow(schedule, k, count, &counting);
  return counting.slots;
}
