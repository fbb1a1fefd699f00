/* Parts of a tensor, one on each rank, and the whole: what comes together and what adds up is what it should be, to the
 * bit, for random extents. usage: parts SEED ROUNDS */
#include "include/accel/collectives.h"
#include "runtime/base/half.h"
#include "runtime/process/world.h"

#include <stdio.h>
#include <stdlib.h>

enum { MOST = 20000 };

static int rank, ranks;
static uint64_t state;

static size_t drawn(size_t below) {
  state ^= state >> 12, state ^= state << 25, state ^= state >> 27;
  return (size_t)(state * 0x2545F4914F6CDD1DULL >> 33) % below;
}

/* Element i of what a rank has, with bits enough that sums are rounded. */
static float value_of(int who, size_t i) {
  return (float)((i * 7919 + (size_t)who * 104729) % 20011) / 977.0f - 9.0f;
}

static void require(float is, float wanted, const char *what, size_t i) {
  if (is == wanted) return;
  fprintf(stderr, "rank %d: %s: element %zu is %.9g and not %.9g\n", rank, what, i, (double)is, (double)wanted);
  rt_world_end(3);
}

/* Where element i of rank `who`'s part is in the whole. */
static size_t in_whole(int who, size_t i, size_t length) {
  return (i / length * (size_t)ranks + (size_t)who) * length + i % length;
}

static float sum_at(size_t i, bool narrow) {
  float sum = 0;
  for (int r = 0; r < ranks; r++) {
    float value = value_of(r, i);
    sum += narrow ? rt_widen_bfloat16(rt_narrow_bfloat16(value)) : value;
  }
  return narrow ? rt_widen_bfloat16(rt_narrow_bfloat16(sum)) : sum;
}

static void gather(size_t outer, size_t length) {
  static float part[MOST], whole[MOST];
  static uint16_t narrow_part[MOST], narrow_whole[MOST];
  const size_t count = outer * length;
  for (size_t i = 0; i < count; i++) part[i] = value_of(rank, i), narrow_part[i] = rt_narrow_bfloat16(part[i]);
  accel_all_gather_parts(ACCEL_TP, part, whole, outer, length);
  accel_all_gather_bfloat16_parts(ACCEL_TP, narrow_part, narrow_whole, outer, length);
  for (int r = 0; r < ranks; r++)
    for (size_t i = 0; i < count; i++) {
      require(whole[in_whole(r, i, length)], value_of(r, i), "all-gather", i);
      require(rt_widen_bfloat16(narrow_whole[in_whole(r, i, length)]),
              rt_widen_bfloat16(rt_narrow_bfloat16(value_of(r, i))), "all-gather of bfloat16", i);
    }
}

static void scatter(size_t outer, size_t length) {
  static float part[MOST], whole[MOST], work[MOST];
  static uint16_t narrow_part[MOST], narrow_whole[MOST], narrow_work[MOST];
  const size_t count = outer * length;
  for (size_t i = 0; i < count * (size_t)ranks; i++)
    whole[i] = value_of(rank, i), narrow_whole[i] = rt_narrow_bfloat16(whole[i]);
  accel_reduce_scatter_parts(ACCEL_TP, whole, part, work, outer, length);
  accel_reduce_scatter_bfloat16_parts(ACCEL_TP, narrow_whole, narrow_part, narrow_work, outer, length);
  for (size_t i = 0; i < count; i++) {
    size_t at = in_whole(rank, i, length);
    require(part[i], sum_at(at, false), "reduce-scatter", i);
    require(rt_widen_bfloat16(narrow_part[i]), sum_at(at, true), "reduce-scatter of bfloat16", i);
  }
}

int main(int argc, char **argv) {
  if (argc != 3) return 2;
  rt_world_join();
  rank = rt_world()->rank, ranks = rt_world()->ranks;
  const struct accel_program program = {.mesh = {[ACCEL_TP] = ranks}, .timeout = 200};
  struct problem problem;
  state = strtoull(argv[1], NULL, 10) * 2 + 1;
  if (!rt_world_divide(&program, &problem)) return 2;
  for (int i = 0; i < atoi(argv[2]); i++) {
    size_t outer = 1 + drawn(9), length = 1 + drawn(MOST / outer / (size_t)ranks);
    gather(outer, length);
    scatter(outer, length);
  }
  rt_world_leave();
  return 0;
}
