#include "gen/plan/report/stage_times.h"

const char *const action_names[ACTIONS] = {"forward", "backward", "gradients of weights"};

struct laying {
  struct stage_times *times;
  const struct schedule *schedule;
  int64_t rank;  /* whose actions are listed */
  int64_t *ends; /* by kind, stage and micro-batch; 0: it is not done */
};

static void list_action(void *context, enum stage_action kind, struct stage_work work) {
  struct laying *laying = context;
  struct stage_times *times = laying->times;
  times->actions[times->count++] = (struct timed_action){.kind = kind, .work = work, .rank = laying->rank};
}

static int64_t *end_of(const struct laying *laying, enum stage_action kind, int64_t stage, int64_t micro_batch) {
  const int64_t stages = laying->schedule->ranks * laying->schedule->chunks;
  return &laying->ends[((int64_t)kind * stages + stage) * laying->schedule->micro_batches + micro_batch];
}

/* When what an action needs is done; -1: it is not known yet. */
static int64_t ready(const struct laying *laying, const struct timed_action *action) {
  const int64_t stage = action->work.stage, last = laying->schedule->ranks * laying->schedule->chunks - 1;
  int64_t end;
  if (action->kind == ACTION_FORWARD && stage == 0) return 0;
  if (action->kind == ACTION_FORWARD)
    end = *end_of(laying, ACTION_FORWARD, stage - 1, action->work.micro_batch);
  else if (action->kind == ACTION_BACKWARD && stage < last)
    end = *end_of(laying, ACTION_BACKWARD, stage + 1, action->work.micro_batch);
  else
    end = *end_of(laying, action->kind == ACTION_BACKWARD ? ACTION_FORWARD : ACTION_BACKWARD, stage,
                  action->work.micro_batch);
  return end > 0 ? end : -1;
}

static int64_t length_of(const struct schedule *schedule, enum stage_action kind) {
  return kind == ACTION_BACKWARD && !schedule->defers ? 2 : 1;
}

/* Lays the actions of a rank from `next` to `end` as far as what they need is known. Where it stopped. */
static int64_t lay_rank(const struct laying *laying, int64_t next, int64_t first, int64_t end) {
  struct timed_action *actions = laying->times->actions;
  for (; next < end; next++) {
    struct timed_action *action = &actions[next];
    const int64_t from = ready(laying, action), before = next > first ? actions[next - 1].end : 0;
    if (from < 0) break;
    action->start = from > before ? from : before;
    action->end = action->start + length_of(laying->schedule, action->kind);
    *end_of(laying, action->kind, action->work.stage, action->work.micro_batch) = action->end;
    if (action->end > laying->times->parts) laying->times->parts = action->end;
  }
  return next;
}

struct stage_times stage_times_of(struct arena *arena, const struct schedule *schedule) {
  const int64_t works = schedule->ranks * schedule->chunks * schedule->micro_batches;
  struct stage_times times = {.ranks = schedule->ranks};
  struct laying laying = {.times = &times, .schedule = schedule};
  int64_t *firsts = arena_alloc(arena, ((size_t)schedule->ranks + 1) * sizeof *firsts);
  int64_t *next = arena_alloc(arena, (size_t)schedule->ranks * sizeof *next);
  times.actions = arena_alloc(arena, (size_t)(ACTIONS * works) * sizeof *times.actions);
  laying.ends = arena_alloc(arena, (size_t)(ACTIONS * works) * sizeof *laying.ends);
  for (int64_t i = 0; i < ACTIONS * works; i++) laying.ends[i] = 0;
  for (laying.rank = 0; laying.rank < schedule->ranks; laying.rank++) {
    next[laying.rank] = firsts[laying.rank] = times.count;
    schedule_follow(schedule, laying.rank, list_action, &laying);
  }
  firsts[schedule->ranks] = times.count;
  for (bool moves = true; moves;) {
    moves = false;
    for (int64_t k = 0; k < schedule->ranks; k++) {
      const int64_t stopped = lay_rank(&laying, next[k], firsts[k], firsts[k + 1]);
      moves = moves || stopped > next[k];
      next[k] = stopped;
    }
  }
  return times;
}
