/* Running a launch: blocks one after the other, their warps until each is at a barrier or has ended. */
#define _DEFAULT_SOURCE
#include "tests/cuda/standin/ptx/warp.h"

#include <stdlib.h>

#include "tests/cuda/standin/core.h"
#include "tests/cuda/standin/ptx/bits.h"
#include "tests/cuda/standin/ptx/checks.h"
#include "tests/cuda/standin/ptx/counts.h"
#include "tests/cuda/standin/ptx/lanes.h"

/* ---- Groups ---- */

static void push(struct warp *warp, struct group group) {
  for (unsigned i = 0; i < warp->n_groups; i++) {
    struct group *same = &warp->groups[i];
    if (same->at != group.at || same->waits != group.waits) continue;
    same->lanes |= group.lanes;
    return;
  }
  warp->groups[warp->n_groups++] = group;
}

static struct group take(struct warp *warp, unsigned number) {
  const struct group taken = warp->groups[number];
  warp->groups[number] = warp->groups[--warp->n_groups];
  return taken;
}

static const struct instruction *instruction_at(const struct warp *warp, unsigned at) {
  return &warp->block->launch->kernel->code.items[at];
}

/* The lanes of a group that execute an instruction. */
static u32 guarded(const struct warp *warp, const struct instruction *of, u32 lanes) {
  if (!of->is_guarded) return lanes;
  const u32 unknown = lanes & ~warp->defined[of->guard.number];
  if (unknown != 0) wrong(warp, of, __builtin_ctz(unknown), "a predicate that has no value");
  return lanes & predicate(warp, of->guard);
}

/* Whether all that a collective waits for is there; warp->active becomes the lanes that execute it. */
static bool is_complete(struct warp *warp, const struct instruction *of, u32 lanes) {
  warp->active = guarded(warp, of, lanes);
  if (warp->active == 0) return true;
  check_defined(warp, of);
  const u32 wanted = collective_lanes(warp, of);
  for (int i = 0; i < LANES; i++) {
    if ((warp->active & ~wanted) >> i & 1) wrong(warp, of, i, "the mask %08x, which has not the lane itself", wanted);
    if ((wanted & lanes & ~warp->active) >> i & 1)
      wrong(warp, of, i, "the mask %08x, whose lane does not execute it", wanted);
  }
  return (wanted & ~warp->active) == 0;
}

/* Nobody can continue: says who waits for whom. */
static _Noreturn void stuck(struct warp *warp) {
  const struct group *first = &warp->groups[0];
  const struct instruction *of = instruction_at(warp, first->at);
  is_complete(warp, of, first->lanes);
  const u32 missing = collective_lanes(warp, of) & ~first->lanes, ended = missing & ~warp->alive;
  for (unsigned i = 1; i < warp->n_groups; i++)
    if (warp->groups[i].lanes & missing)
      wrong(warp, of, -1, "divergence: the lanes %08x are there, and wait for %08x, which are at line %d", first->lanes,
            missing, instruction_at(warp, warp->groups[i].at)->line);
  wrong(warp, of, -1, "divergence: the lanes %08x are there, and wait for %08x, which have ended", first->lanes, ended);
}

/* The group that continues: the one that is first in the program. Of groups that wait, one for which an ended lane was
 * the last that it waited for. False: all lanes have ended. */
static bool choose(struct warp *warp, struct group *chosen) {
  unsigned best = warp->n_groups;
  for (unsigned i = 0; i < warp->n_groups; i++)
    if (!warp->groups[i].waits && (best == warp->n_groups || warp->groups[i].at < warp->groups[best].at)) best = i;
  for (unsigned i = 0; i < warp->n_groups && best == warp->n_groups; i++)
    if (is_complete(warp, instruction_at(warp, warp->groups[i].at), warp->groups[i].lanes)) best = i;
  if (best == warp->n_groups && warp->n_groups > 0) stuck(warp);
  if (best == warp->n_groups) return false;
  *chosen = take(warp, best);
  chosen->waits = false;
  return true;
}

/* ---- Instructions ---- */

/* Takes up the groups that wait at the same collective, and executes it when all are there. False: it waits, or the
 * block has to. */
static bool meet(struct warp *warp, const struct instruction *of, struct group *group) {
  for (unsigned i = 0; i < warp->n_groups; i++)
    if (warp->groups[i].waits && warp->groups[i].at == group->at) group->lanes |= take(warp, i--).lanes;
  if (!is_complete(warp, of, group->lanes)) {
    group->waits = true;
    push(warp, *group);
    return false;
  }
  if (warp->active == 0) return true;
  if (!collective_is_barrier(of)) {
    collective_run(warp, of);
    return true;
  }
  barrier_arrive(warp, of);
  push(warp, *group);
  return false;
}

static unsigned first_of_others(const struct warp *warp) {
  unsigned first = UINT32_MAX;
  for (unsigned i = 0; i < warp->n_groups; i++)
    if (!warp->groups[i].waits && warp->groups[i].at < first) first = warp->groups[i].at;
  return first;
}

/* Of operands that have no value, or not all of its bits, in some lanes. */
static void run_partly(struct warp *warp, const struct instruction *of, u32 unknown) {
  struct open_bits found;
  bits_find(warp, of, unknown, &found);
  of->run(warp, of);
  bits_keep(warp, of, unknown, &found);
}

static void run_one(struct warp *warp, const struct instruction *of) {
  if (!of->is_plain) {
    check_defined(warp, of);
    of->run(warp, of);
    return;
  }
  const u32 unknown = warp->active & ~lanes_known(warp, of);
  if (unknown == 0)
    of->run(warp, of);
  else
    run_partly(warp, of, unknown);
}

static void count(const struct warp *warp, const struct instruction *of, u32 lanes) {
  struct count *counted = count_of(warp->block->launch->kernel, of);
  if (counted == NULL) return;
  counted->warps++;
  counted->lanes += (unsigned)__builtin_popcount(of->flow == BRANCH ? lanes : warp->active);
  counted->diverged += of->flow == BRANCH && warp->active != 0 && warp->active != lanes;
}

/* Runs a group until it meets another one, diverges, waits or ends. */
static void run_group(struct warp *warp, struct group group) {
  const unsigned limit = first_of_others(warp);
  for (;;) {
    const struct instruction *in = instruction_at(warp, group.at);
    const u32 active = guarded(warp, in, group.lanes);
    warp->active = active;
    count(warp, in, group.lanes);
    if (in->flow == ON) {
      if (active != 0) run_one(warp, in);
      group.at++;
    } else if (in->flow == BRANCH) {
      if (active == group.lanes) {
        group.at = in->target;
      } else if (active == 0) {
        group.at++;
      } else {
        push(warp, (struct group){group.at + 1, group.lanes & ~active, false});
        push(warp, (struct group){in->target, active, false});
        return;
      }
    } else if (in->flow == LEAVE) {
      warp->alive &= ~active;
      group.lanes &= ~active;
      group.at++;
      if (group.lanes == 0) return;
    } else {
      if (!meet(warp, in, &group)) return;
      group.at++;
    }
    if (group.at >= limit) {
      push(warp, group);
      return;
    }
  }
}

static void run_warp(struct warp *warp) {
  struct group group;
  while (!warp->is_at_barrier && choose(warp, &group)) run_group(warp, group);
}

/* ---- Blocks ---- */

static const struct instruction *barrier_of(const struct warp *warp) {
  return instruction_at(warp, warp->groups[0].at);
}

/* Lets those that wait at a barrier go on when all are there. Whether they were. */
static bool pass_barrier(struct block *block, u32 barrier) {
  const struct warp *first = NULL;
  u32 count = 0, voted = 0, warps = 0;
  bool is_whole = true;
  for (unsigned w = 0; w < block->n_warps; w++) {
    const struct warp *warp = &block->warps[w];
    const bool is_here = warp->is_at_barrier && warp->barrier == barrier;
    if (!is_here && warp->alive != 0) is_whole = false;
    if (!is_here) continue;
    if (first == NULL) first = warp;
    count += (u32)__builtin_popcount(warp->alive);
    voted += (u32)__builtin_popcount(warp->vote);
    warps++;
  }
  if (first == NULL || (first->barrier_count > 0 ? warps * LANES != first->barrier_count : !is_whole)) return false;
  const struct instruction *same = barrier_of(first);
  const bool is_of_all = first->barrier_count == 0;
  for (unsigned w = 0; w < block->n_warps; w++) {
    struct warp *warp = &block->warps[w];
    if (!warp->is_at_barrier || warp->barrier != barrier) continue;
    const struct instruction *of = barrier_of(warp);
    if (is_of_all && of != same)
      wrong(warp, of, -1, "divergence: warp %u is at this barrier, and warp %u at that of line %d", warp->number,
            first->number, same->line);
    warp->active = warp->groups[0].lanes;
    barrier_leave(warp, of, count, voted);
    warp->groups[0].at++;
  }
  block->time++;
  return true;
}

static u32 next_random(u64 *state) {
  *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
  return (u32)(*state >> 33);
}

/* In which order `count` take turns: STANDIN_ORDER=0 the first one first, else as drawn from this seed. */
static void draw_order(u64 *state, u32 *order, u32 count) {
  for (u32 i = 0; i < count; i++) order[i] = i;
  if (*state == 0) return;
  for (u32 i = count; i > 1; i--) {
    const u32 other = next_random(state) % i, kept = order[i - 1];
    order[i - 1] = order[other];
    order[other] = kept;
  }
}

static void run_block(struct block *block, u64 *random) {
  u32 order[MOST_WARPS];
  for (;;) {
    draw_order(random, order, block->n_warps);
    u32 alive = 0;
    for (unsigned w = 0; w < block->n_warps; w++) run_warp(&block->warps[order[w]]);
    for (unsigned w = 0; w < block->n_warps; w++) alive |= block->warps[w].alive;
    if (alive == 0) return;
    bool passed = false;
    for (u32 b = 0; b < BARRIERS; b++) passed |= pass_barrier(block, b);
    for (unsigned w = 0; w < block->n_warps && !passed; w++)
      if (block->warps[w].alive != 0)
        wrong(&block->warps[w], barrier_of(&block->warps[w]), -1, "divergence: not all warps come to barrier %u",
              block->warps[w].barrier);
  }
}

/* ---- Launches ---- */

static void *memory_of(size_t bytes) {
  void *made = aligned_alloc(64, (bytes + 127) / 64 * 64);
  if (made == NULL) fault("no memory");
  return made;
}

static void fill_constants(const struct kernel *kernel, char *registers) {
  for (int c = 0; c < kernel->constants.count; c++) {
    const struct constant *constant = &kernel->constants.items[c];
    char *to = registers + constant->at;
    const size_t bytes = constant->bytes == PREDICATE ? 4 : constant->bytes;
    const size_t count = constant->bytes == PREDICATE ? 1 : LANES;
    for (size_t i = 0; i < count; i++) memcpy(to + i * bytes, &constant->value, bytes);
  }
}

static void fill_specials(struct warp *warp) {
  const struct launch *launch = warp->block->launch;
  const struct kernel *kernel = launch->kernel;
  for (int s = 0; s < SPECIALS; s++) {
    if (!kernel->has_special[s]) continue;
    u32 made[LANES];
    for (u32 i = 0; i < LANES; i++) {
      const u32 thread = warp->number * LANES + i, *size = launch->block;
      const u32 values[SPECIALS] = {thread % size[0],
                                    thread / size[0] % size[1],
                                    thread / size[0] / size[1],
                                    size[0],
                                    size[1],
                                    size[2],
                                    warp->block->index[0],
                                    warp->block->index[1],
                                    warp->block->index[2],
                                    launch->grid[0],
                                    launch->grid[1],
                                    launch->grid[2],
                                    i,
                                    warp->number};
      made[i] = values[s];
    }
    memcpy(warp->registers + kernel->specials[s].at, made, sizeof made);
    warp->defined[kernel->specials[s].number] = ALL_LANES;
  }
}

static void begin_warp(struct warp *warp, u32 threads) {
  const struct kernel *kernel = warp->block->launch->kernel;
  const u32 left = threads - warp->number * LANES;
  warp->exists = warp->alive = left >= LANES ? ALL_LANES : (UINT32_C(1) << left) - 1;
  memset(warp->defined, 0, kernel->n_registers * sizeof *warp->defined);
  memset(warp->partly, 0, kernel->n_registers * sizeof *warp->partly);
  warp->defined[0] = ALL_LANES;
  memset(warp->local_written, 0, kernel->local_bytes * LANES);
  fill_specials(warp);
  warp->groups[0] = (struct group){0, warp->alive, false};
  warp->n_groups = 1;
  warp->is_at_barrier = false;
  warp->vote = 0;
  warp->time++;
  warp->n_copying = warp->copy_groups = 0;
}

/* One block's memory serves all of them. */
static struct block make_block(struct launch *launch) {
  const struct kernel *kernel = launch->kernel;
  const u32 threads = launch->block[0] * launch->block[1] * launch->block[2];
  struct block made = {.launch = launch, .n_warps = (threads + LANES - 1) / LANES};
  made.shared = memory_of(launch->shared_bytes);
  made.cells = calloc(launch->shared_bytes / 2 + 1, sizeof *made.cells);
  made.warps = calloc(made.n_warps, sizeof *made.warps);
  if (made.cells == NULL || made.warps == NULL) fault("no memory");
  for (unsigned w = 0; w < made.n_warps; w++) {
    struct warp *warp = &made.warps[w];
    char *memory = memory_of((size_t)kernel->constant_bytes + kernel->register_bytes);
    warp->number = w;
    warp->registers = memory + kernel->constant_bytes;
    warp->defined = memory_of(kernel->n_registers * sizeof *warp->defined);
    warp->partly = memory_of(kernel->n_registers * sizeof *warp->partly);
    warp->local = memory_of(kernel->local_bytes * LANES);
    warp->local_written = memory_of(kernel->local_bytes * LANES);
    fill_constants(kernel, warp->registers);
  }
  return made;
}

static void free_block(struct block *block) {
  for (unsigned w = 0; w < block->n_warps; w++) {
    struct warp *warp = &block->warps[w];
    free(warp->registers - block->launch->kernel->constant_bytes);
    free(warp->defined);
    free(warp->partly);
    free(warp->open);
    free(warp->local);
    free(warp->local_written);
    free(warp->copying);
  }
  free(block->warps);
  free(block->cells);
  free(block->shared);
}

void launch_run(struct launch *launch) {
  const u32 threads = launch->block[0] * launch->block[1] * launch->block[2];
  const u32 blocks = launch->grid[0] * launch->grid[1] * launch->grid[2];
  u64 random = (u64)setting("STANDIN_ORDER", 0);
  u32 *order = memory_of(blocks * sizeof *order);
  struct block block = make_block(launch);
  launch->begun = memory_of(blocks * sizeof *launch->begun);
  checks_begin(launch);
  counts_launch(launch);
  draw_order(&random, order, blocks);
  for (u32 i = 0; i < blocks; i++) {
    const u32 b = order[i], *grid = launch->grid;
    block.number = b;
    block.index[0] = b % grid[0];
    block.index[1] = b / grid[0] % grid[1];
    block.index[2] = b / grid[0] / grid[1];
    block.begin = ++block.time;
    launch->begun[launch->n_begun++] = (struct begun){block.begin, b};
    for (unsigned w = 0; w < block.n_warps; w++) {
      block.warps[w].block = &block;
      begin_warp(&block.warps[w], threads);
    }
    run_block(&block, &random);
  }
  checks_end(launch, block.time);
  free_block(&block);
  free(launch->begun);
  free(order);
}
