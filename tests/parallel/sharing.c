/* Collectives among ranks of one machine, over and over, with ranks that come early and late: each gives what it
 * should, to the bit. usage: sharing SEED ROUNDS; a line with the sum of all bits goes to standard output, of rank 0.
 */
#include "include/accel/collectives.h"
#include "runtime/base/half.h"
#include "runtime/process/world.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MOST = 40000, SETS = 6, HUGE_PAGE = 2 << 20 };

/* As a program's: what is sent, what is received, and a workspace. */
static struct arena {
  float values[SETS][MOST], gathered[SETS][MOST], own[SETS][MOST], arriving[SETS][MOST];
  uint16_t wire[SETS][MOST];
} *arena;

static int rank, ranks;
static uint64_t common, alone; /* states of draws that all ranks make alike, and of this rank's */
static uint64_t bits;

static uint64_t drawn(uint64_t *state) {
  *state ^= *state >> 12, *state ^= *state << 25, *state ^= *state >> 27;
  return *state * 0x2545F4914F6CDD1DULL >> 16;
}

static float value_of(int who, int set, size_t i) {
  return (float)((i * 7919 + (size_t)who * 104729 + (size_t)set * 31) % 20011) / 977.0f - 9.0f;
}

/* The order that is promised for a power of two ranks; of others the first ones that are make a half. */
static float tree(int first, int n, int set, size_t i) {
  int lower = 1;
  if (n == 1) return value_of(first, set, i);
  while (2 * lower < n) lower *= 2;
  float left = tree(first, lower, set, i), right = tree(first + lower, n - lower, set, i);
  return left + right;
}

static void require(float is, float wanted, const char *what, size_t i) {
  uint32_t word;
  memcpy(&word, &is, sizeof word);
  bits = bits * 31 + word;
  if (is == wanted) return;
  fprintf(stderr, "rank %d: %s: element %zu is %.9g and not %.9g\n", rank, what, i, (double)is, (double)wanted);
  rt_world_end(3);
}

static void linger(void) {
  uint64_t dice = drawn(&alone) % 8;
  if (dice == 0) nanosleep(&(struct timespec){0, (long)(drawn(&alone) % 2000000)}, NULL);
  if (dice == 1) accel_advance_collectives();
}

struct set {
  int kind;
  size_t shard_size, last, count;
};

static void begin(const struct set *set, int s, enum accel_axis axis) {
  size_t first = (size_t)rank * set->shard_size, own = rank + 1 < ranks ? set->shard_size : set->last;
  for (size_t i = 0; i < set->count; i++) arena->values[s][i] = value_of(rank, s, i);
  for (size_t i = 0; i < own; i++) arena->own[s][i] = set->kind == 3 ? 0.5f : value_of(rank, s, first + i);
  linger();
  if (set->kind == 0) accel_start_all_reduce(axis, arena->values[s], set->count);
  if (set->kind == 1) accel_start_all_reduce_as(axis, ACCEL_BFLOAT16, arena->values[s], arena->wire[s], set->count);
  if (set->kind == 2) accel_start_reduce_scatter(axis, arena->values[s], arena->own[s], set->shard_size, set->last);
  if (set->kind == 3)
    accel_start_reduce_scatter_onto(axis, arena->values[s], arena->own[s], arena->arriving[s], set->shard_size,
                                    set->last);
  if (set->kind == 4) accel_start_all_gather_from(axis, arena->own[s], arena->gathered[s], set->shard_size, set->last);
  if (set->kind == 5) {
    memcpy(arena->gathered[s] + first, arena->own[s], own * sizeof(float));
    accel_start_all_gather(axis, arena->gathered[s], set->shard_size, set->last);
  }
}

static void check(const struct set *set, int s) {
  size_t first = (size_t)rank * set->shard_size, own = rank + 1 < ranks ? set->shard_size : set->last;
  for (size_t i = 0; i < set->count && set->kind == 0; i++)
    require(arena->values[s][i], tree(0, ranks, s, i), "all-reduce", i);
  for (size_t i = 0; i < set->count && set->kind == 1; i++) bits = bits * 31 + rt_narrow_bfloat16(arena->values[s][i]);
  for (size_t i = 0; i < own && (set->kind == 2 || set->kind == 3); i++)
    require(arena->own[s][i], tree(0, ranks, s, first + i) + (set->kind == 3 ? 0.5f : 0.0f), "reduce-scatter", i);
  for (size_t i = 0; i < set->count && set->kind >= 4; i++) {
    size_t who = set->shard_size > 0 ? i / set->shard_size : (size_t)ranks;
    require(arena->gathered[s][i], value_of(who < (size_t)ranks ? (int)who : ranks - 1, s, i), "all-gather", i);
  }
}

static void round_of(enum accel_axis axis) {
  struct set sets[SETS];
  int count = 1 + (int)(drawn(&common) % SETS);
  for (int s = 0; s < count; s++) {
    size_t most = drawn(&common) % 4 == 0 ? 40 : MOST / (size_t)ranks - 64;
    sets[s] = (struct set){.kind = (int)(drawn(&common) % 6), .shard_size = drawn(&common) % most / 16 * 16};
    sets[s].last = sets[s].shard_size + drawn(&common) % 60;
    sets[s].count = sets[s].shard_size * (size_t)(ranks - 1) + sets[s].last;
    begin(&sets[s], s, axis);
    linger();
  }
  if (drawn(&common) % 2 == 0)
    accel_wait_gathers(), accel_wait_collectives();
  else
    accel_wait_collectives(), accel_wait_gathers();
  bool apart = false;
  for (int s = 0; s < count; s++) {
    check(&sets[s], s);
    apart |= sets[s].kind == 4;
  }
  if (apart) rt_world_largest(0); /* before what others read is written again */
}

int main(int argc, char **argv) {
  if (argc != 3) return 2;
  rt_world_join();
  rank = rt_world()->rank, ranks = rt_world()->ranks;
  const struct accel_program program = {.mesh = {1, ranks}, .timeout = 200};
  struct problem problem;
  common = strtoull(argv[1], NULL, 10) * 2 + 1, alone = common + 1000003 * (uint64_t)(rank + 1);
  arena = aligned_alloc(HUGE_PAGE, (sizeof *arena + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE);
  if (arena == NULL || !rt_world_divide(&program, &problem)) return 2;
  const struct arena_parts parts = {.gathered = {offsetof(struct arena, own), sizeof arena->own},
                                    .summed = {offsetof(struct arena, values), sizeof arena->values}};
  rt_world_open_arena(arena, sizeof *arena, &parts);
  for (int i = 0; i < atoi(argv[2]); i++) round_of(ACCEL_DP_SHARD);
  uint64_t all[64];
  rt_world_gather(&bits, all, sizeof bits);
  for (int r = 1; r < ranks && rank == 0; r++) all[0] = all[0] * 31 + all[r];
  if (rank == 0) printf("%" PRIx64 "\n", all[0]);
  rt_world_leave();
  free(arena);
  return 0;
}
