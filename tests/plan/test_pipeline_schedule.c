/* Orders of a pipeline's stages, run against each other with channels that hold no message: every action comes once and
 * after what it needs, messages of one rank to another are taken in the order in which they are sent, no rank waits
 * forever, and with stages that take equally long ranks wait (N - 1) / (V M + N - 1) of a step, with deferred gradients
 * of weights a third as long. */
#include "gen/plan/ranks/pipeline_schedule.h"

#include <string.h>

#include "tests/spec/cmocka_all.h"

enum { MOST = 4096, RANKS = 8, FORWARD = 1, BACKWARD = 2 /* seconds, of which gradients of weights take one */ };

struct action {
  enum stage_action kind;
  struct stage_work work;
};
struct message {
  struct action action; /* that needs it */
  int64_t at;           /* when it was sent */
};
struct rank {
  struct action actions[MOST];
  int count, next;
  int64_t clock;
  struct message sent[2][MOST]; /* to the rank after this one, to the one before */
  int n_sent[2], taken[2];
};
static struct rank ranks[RANKS];

static void note(void *context, enum stage_action kind, struct stage_work work) {
  struct rank *rank = context;
  assert_in_range(rank->count, 0, MOST - 1);
  rank->actions[rank->count++] = (struct action){kind, work};
}

/* Two ranks have one channel each way for both directions. */
static int channel(const struct schedule *schedule, bool forward) {
  return schedule->ranks == 2 || forward ? 0 : 1;
}

/* Whether the action can begin now, or needs nothing of others: its message is the next one of the channel. */
static bool take(const struct schedule *schedule, int64_t k, const struct action *action) {
  const int64_t stages = schedule->ranks * schedule->chunks;
  const bool forward = action->kind == ACTION_FORWARD;
  if (action->kind == ACTION_DEFERRED) return true;
  if (action->work.stage == (forward ? 0 : stages - 1)) return true;
  struct rank *from = &ranks[(k + (forward ? schedule->ranks - 1 : 1)) % schedule->ranks];
  const int way = channel(schedule, forward);
  if (from->taken[way] == from->n_sent[way]) return false;
  const struct message *message = &from->sent[way][from->taken[way]++];
  assert_int_equal(message->action.kind, action->kind);
  assert_int_equal(message->action.work.stage, action->work.stage);
  assert_int_equal(message->action.work.micro_batch, action->work.micro_batch);
  if (message->at > ranks[k].clock) ranks[k].clock = message->at;
  return true;
}

static void give(const struct schedule *schedule, int64_t k, const struct action *action) {
  const int64_t stages = schedule->ranks * schedule->chunks;
  const bool forward = action->kind == ACTION_FORWARD;
  struct rank *rank = &ranks[k];
  struct message message = {.action = *action};
  rank->clock += forward ? FORWARD : schedule->defers ? BACKWARD / 2 : BACKWARD;
  message.at = rank->clock;
  if (action->kind == ACTION_DEFERRED) return;
  message.action.work.stage += forward ? 1 : -1;
  if (message.action.work.stage < 0 || message.action.work.stage == stages) return;
  const int way = channel(schedule, forward);
  rank->sent[way][rank->n_sent[way]++] = message;
}

static bool run_next(const struct schedule *schedule, int64_t k) {
  struct rank *rank = &ranks[k];
  if (rank->next == rank->count || !take(schedule, k, &rank->actions[rank->next])) return false;
  give(schedule, k, &rank->actions[rank->next++]);
  return true;
}

/* Each stage takes each micro-batch once forward and later once back, in order. */
static void check_actions(const struct schedule *schedule, int64_t k) {
  int64_t next[RANKS * 8][ACTIONS] = {0};
  const struct rank *rank = &ranks[k];
  for (int i = 0; i < rank->count; i++) {
    const struct action *action = &rank->actions[i];
    assert_int_equal(action->work.stage % schedule->ranks, k);
    assert_int_equal(action->work.micro_batch, next[action->work.stage][action->kind]++);
    assert_true(next[action->work.stage][ACTION_BACKWARD] <= next[action->work.stage][ACTION_FORWARD]);
    assert_true(next[action->work.stage][ACTION_DEFERRED] <= next[action->work.stage][ACTION_BACKWARD]);
  }
  for (int64_t s = k; s < schedule->ranks * schedule->chunks; s += schedule->ranks)
    for (int kind = 0; kind < ACTIONS; kind++)
      assert_int_equal(next[s][kind], kind == ACTION_DEFERRED && !schedule->defers ? 0 : schedule->micro_batches);
}

static void run(const struct schedule *schedule) {
  const int64_t work = schedule->chunks * schedule->micro_batches;
  int64_t last = 0;
  memset(ranks, 0, sizeof ranks);
  for (int64_t k = 0; k < schedule->ranks; k++) {
    schedule_follow(schedule, k, note, &ranks[k]);
    check_actions(schedule, k);
  }
  for (bool passed = true; passed;) {
    passed = false;
    for (int64_t k = 0; k < schedule->ranks; k++)
      while (run_next(schedule, k)) passed = true;
  }
  for (int64_t k = 0; k < schedule->ranks; k++) {
    assert_int_equal(ranks[k].next, ranks[k].count);
    if (ranks[k].clock > last) last = ranks[k].clock;
  }
  const int64_t waits = schedule->ranks - 1, fewer = schedule->ranks > work ? schedule->ranks - work : 0;
  assert_int_equal(last,
                   work * (FORWARD + BACKWARD) + (schedule->defers ? waits + fewer : waits * (FORWARD + BACKWARD)));
}

static void orders(void **state) {
  struct arena *arena = arena_new();
  (void)state;
  for (int64_t n = 2; n <= RANKS; n++)
    for (int64_t m = 2; m <= 3 * n; m++) {
      struct schedule schedule = schedule_of(arena, SCHEDULE_1F1B, n, 1, m);
      run(&schedule);
      schedule = schedule_of(arena, SCHEDULE_GPIPE, n, 1, m);
      run(&schedule);
      schedule = schedule_of(arena, SCHEDULE_ZERO_BUBBLE, n, 1, m);
      run(&schedule);
      for (int64_t v = 2; v <= 4 && m % n == 0; v++) {
        schedule = schedule_of(arena, SCHEDULE_INTERLEAVED, n, v, m);
        run(&schedule);
      }
    }
  arena_free(arena);
}

static void slots(void **state) {
  struct arena *arena = arena_new();
  const int64_t first[] = {3, 3, 2, 1}, chunks[] = {4, 3, 2, 1};
  struct schedule schedule = schedule_of(arena, SCHEDULE_1F1B, 4, 1, 3);
  (void)state;
  assert_memory_equal(schedule_slots(arena, &schedule), first, sizeof first);
  schedule = schedule_of(arena, SCHEDULE_INTERLEAVED, 2, 2, 8);
  assert_memory_equal(schedule_slots(arena, &schedule), chunks, sizeof chunks);
  schedule = schedule_of(arena, SCHEDULE_GPIPE, 3, 1, 5);
  for (int k = 0; k < 3; k++) assert_int_equal(schedule_slots(arena, &schedule)[k], 5);
  schedule = schedule_of(arena, SCHEDULE_ZERO_BUBBLE, 3, 1, 5);
  for (int k = 0; k < 3; k++) assert_int_equal(schedule_slots(arena, &schedule)[k], 3);
  arena_free(arena);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(orders), cmocka_unit_test(slots)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
