#include "gen/plan/report/stage_occupancy.h"

#include "gen/plan/ranks/stage_bytes.h"
#include "gen/plan/ranks/stage_memory.h"

struct maker {
  struct program *program;
  const struct stage_times *times;
  struct stage_occupancy *of;
  int rank;
  int64_t *slots; /* by stage: where its first slot is */
};

/* What is there throughout, from the bottom up. */
static void add_whole(struct maker *maker, const char *name, enum occupied kind, int64_t bytes) {
  const struct occupant whole = {name, kind, maker->of->total, bytes, 0, maker->times->parts};
  if (bytes > 0) ARENA_PUSH(maker->program->arena, maker->of->occupants, whole);
  maker->of->total += bytes;
}

/* Slots of the rank's stages, one after the other. */
static int64_t add_slots(struct maker *maker) {
  const struct pipeline *pipeline = &maker->program->ranks.pipeline;
  int64_t bytes = 0;
  for (int s = maker->rank; s < pipeline->stages; s += pipeline->ranks) {
    maker->slots[s] = maker->of->total + bytes;
    bytes += pipeline->slots[s] * stage_slot_bytes(maker->program, s);
  }
  maker->of->total += bytes;
  return bytes;
}

/* When the last action that reads the activations of a forward is done. */
static int64_t end_of(const struct stage_times *times, const struct timed_action *forward) {
  const struct timed_action *after = times->actions + times->count, *last = forward;
  for (const struct timed_action *action = forward; action < after && action->rank == forward->rank; action++)
    if (action->work.stage == forward->work.stage && action->work.micro_batch == forward->work.micro_batch)
      last = action;
  return last->end;
}

/* Micro-batch i has slot i % slots of its stage (templates/program/pipeline.c.j2). */
static void add_activations(struct maker *maker) {
  const struct pipeline *pipeline = &maker->program->ranks.pipeline;
  for (int64_t i = 0; i < maker->times->count; i++) {
    const struct timed_action *forward = &maker->times->actions[i];
    const int64_t stage = forward->work.stage, batch = forward->work.micro_batch;
    if (forward->rank != maker->rank || forward->kind != ACTION_FORWARD) continue;
    const int64_t bytes = stage_slot_bytes(maker->program, (int)stage);
    const char *name =
        arena_printf(maker->program->arena, "micro-batch %lld, stage %lld", (long long)batch, (long long)stage);
    const struct occupant kept = {
        name,  OCCUPIED_ACTIVATIONS, maker->slots[stage] + batch % pipeline->slots[stage] * bytes,
        bytes, forward->start,       end_of(maker->times, forward)};
    ARENA_PUSH(maker->program->arena, maker->of->occupants, kept);
  }
}

static void fill(struct maker *maker) {
  const struct stage_bytes bytes = stage_bytes(maker->program, maker->rank);
  add_whole(maker, occupied_names[OCCUPIED_WEIGHTS], OCCUPIED_WEIGHTS, bytes.weights);
  add_whole(maker, occupied_names[OCCUPIED_GRADIENTS], OCCUPIED_GRADIENTS, bytes.gradients);
  add_whole(maker, occupied_names[OCCUPIED_OPTIMIZER], OCCUPIED_OPTIMIZER, bytes.optimizer);
  add_whole(maker, occupied_names[OCCUPIED_AVERAGES], OCCUPIED_AVERAGES, bytes.averages);
  const int64_t slots = add_slots(maker);
  add_whole(maker, "gradients on their way", OCCUPIED_ACTIVATIONS, bytes.activations - slots);
  add_activations(maker);
}

struct stage_occupancy *stage_occupancies_of(struct program *program, const struct stage_times *times) {
  const struct pipeline *pipeline = &program->ranks.pipeline;
  struct arena *arena = program->arena;
  if (program->kind != PROGRAM_TRAIN || pipeline->stages == 0) return NULL;
  struct stage_occupancy *all = arena_alloc(arena, (size_t)pipeline->ranks * sizeof *all);
  for (int k = 0; k < pipeline->ranks; k++) {
    int64_t *slots = arena_alloc(arena, (size_t)pipeline->stages * sizeof *slots);
    fill(&(struct maker){program, times, &all[k], k, slots});
  }
  return all;
}
