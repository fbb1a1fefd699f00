/* Collectives between a model's kernels, along axes of a mesh in which ranks of a sequence are counted as replicas,
 * too: over the stand-in of NCCL, each in a graph, with kernels before and after it that do not wait by themselves. */
#include "include/accel/gpu/collectives.h"
#include "runtime/process/world.h"
#include "tests/cuda/standin/standin.h"
#include "tests/runtime/cmocka_all.h"
#include "tests/tcp/children.h"

#include <stdio.h>
#include <stdlib.h>

enum { RANKS = 8, BLOCKS = 3, LENGTH = 20, PART = BLOCKS * LENGTH };

struct arena {
  _Alignas(64) float part[PART], whole[2 * PART], sums[PART], own[PART], all[2 * PART],
      transposed[2 * PART], round[PART];
  _Alignas(64) uint16_t narrow[PART];
  _Alignas(256) char workspace[256];
};

static const char *const architectures[] = {"sm_90", NULL};
/* Rank r is number r % 2 along tp, r / 2 % 2 along cp, and r / 2 along dp_replicate. */
static const struct accel_program program = {.mesh = {[ACCEL_DP_REPLICATE] = 4, [ACCEL_CP] = 2, [ACCEL_TP] = 2},
                                             .timeout = 200,
                                             .arena_bytes = sizeof(struct arena)};
static const struct accel_gpu_plan plan = {.architectures = architectures,
                                           .arena_bytes = sizeof(struct arena),
                                           .workspace_offset = offsetof(struct arena, workspace),
                                           .workspace_bytes = 256,
                                           .ahead = 2};
static struct arena *arena, host;

static void require(bool good, const char *what, enum accel_axis axis) {
  if (good) return;
  fprintf(stderr, "rank %d: wrong along axis %d: %s\n", rt_world()->rank, (int)axis, what);
  exit(9);
}

static enum accel_axis at_hand;

static void record(void) {
  const accel_stream stream = accel_gpu_stream(ACCEL_COMPUTE);
  accel_send_receive(at_hand, 1, arena->part, -1, arena->round, sizeof arena->round);
  accel_gpu_copy(stream, arena->own, arena->part, sizeof arena->own);
  accel_all_reduce_from(at_hand, arena->own, arena->sums, PART);
  accel_gpu_copy(stream, arena->own, arena->sums, sizeof arena->own); /* as it was summed, and not before */
  accel_all_reduce_bfloat16_from(at_hand, arena->narrow, arena->narrow, PART);
  if (at_hand == ACCEL_DP_REPLICATE) return;
  accel_all_gather_parts(at_hand, arena->part, arena->whole, BLOCKS, LENGTH);
  accel_gpu_copy(stream, arena->all, arena->whole, sizeof arena->all);
  accel_reduce_scatter_parts(at_hand, arena->all, arena->sums, NULL, BLOCKS, LENGTH);
  accel_gpu_copy(stream, arena->all, arena->whole, sizeof arena->all);
  accel_all_to_all(at_hand, arena->all, arena->transposed, PART * sizeof(float));
}

static float value(int rank, int i) {
  return (float)(100 * rank + i);
}

/* Ranks `first`, `first` + `stride`, …: those along the axis. */
static void check(int ranks, int first, int stride) {
  const int own = (rt_world()->rank - first) / stride;
  accel_gpu_read(&host, arena, sizeof host);
  for (int i = 0; i < PART; i++) {
    const int before = (own + ranks - 1) % ranks;
    require(host.round[i] == value(first + before * stride, i), "what goes round", at_hand);
    float sum = 0;
    for (int r = 0; r < ranks; r++) sum += value(first + r * stride, i);
    require(host.own[i] == sum, "a sum", at_hand);
    require(host.narrow[i] == (ranks == 2 ? 0x4000 : 0x4080), "a sum in 16 bits", at_hand);
  }
  if (ranks != 2) return;
  for (int i = 0; i < 2 * PART; i++) {
    const int block = i / (2 * LENGTH), r = i / LENGTH % 2, at = block * LENGTH + i % LENGTH;
    require(host.whole[i] == value(first + r * stride, at), "what was gathered", at_hand);
    if (r == own) require(host.sums[at] == 2 * host.whole[i], "what was scattered", at_hand);
    require(host.transposed[i] == host.whole[own * PART + i % PART], "what was exchanged", at_hand);
  }
}

static void along(enum accel_axis axis, int ranks, int first, int stride) {
  at_hand = axis;
  for (int i = 0; i < PART; i++) host.part[i] = value(rt_world()->rank, i);
  for (int i = 0; i < PART; i++) host.narrow[i] = 0x3f80; /* 1 */
  accel_gpu_write(arena, &host, sizeof host);
  struct accel_graph *graph = accel_gpu_capture("along", record);
  accel_gpu_launch(graph);
  check(ranks, first, stride);
}

static void all_axes(void) {
  struct problem problem;
  rt_world_join();
  if (!rt_world_divide(&program, &problem)) rt_fail_together(&problem, 2);
  accel_gpu_open(&program, &plan);
  accel_gpu_open_collectives(&program);
  arena = accel_gpu_arena();
  const int rank = rt_world()->rank;
  along(ACCEL_TP, 2, rank - rank % 2, 1);
  along(ACCEL_CP, 2, rank - rank / 2 % 2 * 2, 2);
  along(ACCEL_DP_REPLICATE, 4, rank % 2, 2);
  int64_t counts[] = {rank};
  accel_all_reduce_counts(ACCEL_DP_REPLICATE, counts, 1);
  require(counts[0] == 12 + 4 * (rank % 2), "counts of the host", ACCEL_DP_REPLICATE);
  accel_gpu_close();
  rt_world_leave();
}

static void test_axes(void **state) {
  (void)state;
  struct ends ends = in_ranks(all_axes, RANKS, "", NULL);
  for (int i = 0; i < RANKS; i++)
    if (ends.status[i] != 0) print_error("rank %d: %d\n%s\n", i, ends.status[i], ends.text);
  for (int i = 0; i < RANKS; i++) assert_int_equal(ends.status[i], 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_axes)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
