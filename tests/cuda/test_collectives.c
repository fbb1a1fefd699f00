/* Collectives of eight ranks over the stand-in of NCCL: what comes out, in and out of graphs, the order of streams, and
 * ranks that do not do the same. */
#include "include/accel/gpu/collectives.h"
#include "runtime/process/world.h"
#include "tests/cuda/standin/standin.h"
#include "tests/runtime/cmocka_all.h"
#include "tests/tcp/children.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COUNT = 40000 }; /* more than the stand-in moves at once */

struct arena {
  _Alignas(64) float values[COUNT];
  _Alignas(64) float whole[8 * 512], own[512], exchange[512];
  _Alignas(64) uint16_t narrow[512];
  _Alignas(64) double doubles[4];
  _Alignas(256) char workspace[256];
};

static const char *const architectures[] = {"sm_90", NULL};
static const struct accel_program program = {
    .mesh = {2, 4}, .timeout = 200, .arena_bytes = sizeof(struct arena), .sharding.n_rows = 2};
static const struct accel_gpu_plan plan = {.architectures = architectures,
                                           .arena_bytes = sizeof(struct arena),
                                           .workspace_offset = offsetof(struct arena, workspace),
                                           .workspace_bytes = 256,
                                           .ahead = 2};
static struct arena *arena, host;

static void open_all(void) {
  struct problem problem;
  rt_world_join();
  if (!rt_world_divide(&program, &problem)) rt_fail_together(&problem, 2);
  accel_gpu_open(&program, &plan);
  accel_gpu_open_collectives(&program);
  arena = accel_gpu_arena();
}

static void close_all(void) {
  accel_gpu_close();
  rt_world_leave();
}

static void require(bool good, const char *what) {
  if (good) return;
  fprintf(stderr, "rank %d: wrong: %s\n", rt_world()->rank, what);
  exit(9);
}

/* Ranks 0 … 3 and 4 … 7 are neighbours along dp_shard; r and r + 4 along dp_replicate. */
static float sum_along(enum accel_axis axis, float each) {
  float rank = (float)rt_world()->rank, first = rank < 4 ? 0.0f : 4.0f;
  return each * (axis == ACCEL_DP_SHARD ? 4.0f * first + 6.0f : (float)(rt_world()->rank % 4) * 2.0f + 4.0f);
}

static void record_sums(void) {
  accel_start_all_reduce(ACCEL_DP_REPLICATE, arena->values, COUNT);
  accel_gpu_zero(accel_gpu_stream(ACCEL_COMPUTE), arena->doubles, sizeof arena->doubles); /* concurrently */
  accel_gpu_start_all_gather(ACCEL_DP_SHARD, ACCEL_FLOAT32, arena->own, arena->whole, 512);
  accel_wait_collectives();
  accel_gpu_start_reduce_scatter(ACCEL_DP_SHARD, ACCEL_FLOAT32, arena->whole, arena->own, 512);
  accel_wait_collectives();
  accel_gpu_start_all_reduce(ACCEL_DP_SHARD, ACCEL_BFLOAT16, arena->narrow, 512);
  accel_wait_collectives();
}

static void fill(void) {
  float rank = (float)rt_world()->rank;
  for (int i = 0; i < COUNT; i++) host.values[i] = rank * (float)(i % 7);
  for (int i = 0; i < 512; i++) host.own[i] = rank + (float)i;
  for (int i = 0; i < 512; i++) host.narrow[i] = 0x3f80; /* 1 */
  accel_gpu_write(arena, &host, sizeof host);
}

static void check(void) {
  int rank = rt_world()->rank, first = rank < 4 ? 0 : 4;
  accel_gpu_read(&host, arena, sizeof host);
  for (int i = 0; i < COUNT; i++)
    require(host.values[i] == sum_along(ACCEL_DP_REPLICATE, (float)(i % 7)), "a sum over replicas");
  for (int r = 0; r < 4; r++)
    for (int i = 0; i < 512; i++) require(host.whole[r * 512 + i] == (float)(first + r + i), "what was gathered");
  for (int i = 0; i < 512; i++) require(host.own[i] == 4.0f * (float)(rank + i), "what was scattered");
  for (int i = 0; i < 512; i++) require(host.narrow[i] == 0x4080, "a sum in 16 bits");
}

/* Shards of which the last is longer: 40, 40, 40 and 100 values; and one that all is in, as of few values. */
static void shards(size_t shard_size, size_t last) {
  int rank = rt_world()->rank, position = rank % 4, first = rank < 4 ? 0 : 4, all = (int)(3 * shard_size + last);
  for (int i = 0; i < all; i++) host.whole[i] = (float)(rank + i);
  accel_gpu_write(arena->whole, host.whole, sizeof host.whole);
  accel_start_reduce_scatter(ACCEL_DP_SHARD, arena->whole, arena->own, shard_size, last);
  accel_wait_reductions(1);
  accel_gpu_copy(accel_gpu_stream(ACCEL_COMPUTE), arena->whole + (size_t)position * shard_size, arena->own,
                 (position < 3 ? shard_size : last) * sizeof(float));
  accel_start_all_gather(ACCEL_DP_SHARD, arena->whole, shard_size, last);
  accel_wait_gathers();
  accel_gpu_read(host.whole, arena->whole, sizeof host.whole);
  for (int i = 0; i < all; i++) require(host.whole[i] == (float)(4 * (first + i) + 6), "shards of two lengths");
  accel_wait_collectives(); /* from here on sums are counted from zero */
}

struct addition {
  float *sum;
  const float *shards;
  size_t count, step;
};

/* Of four shards: those two apart first. */
static void add_four(const void *at) {
  const struct addition *of = at;
  const float *p = of->shards;
  standin_touch(p, (3 * of->step + of->count) * sizeof *p, false);
  standin_touch(of->sum, of->count * sizeof *of->sum, true);
  for (size_t i = 0; i < of->count; i++)
    of->sum[i] = (p[i] + p[2 * of->step + i]) + (p[of->step + i] + p[3 * of->step + i]);
}

void accel_add_shards(enum accel_axis axis, float *sum, const float *shards, size_t count, size_t step) {
  require(axis == ACCEL_DP_SHARD, "the axis of the sum");
  const struct addition of = {sum, shards, count, step};
  standin_launch(accel_gpu_stream(ACCEL_TRAFFIC), "add_pieces", add_four, &of, sizeof of);
}

/* Value i of rank r, so that sums of four ranks show the order. */
static float in_place(int r, size_t i) {
  static const float numbers[] = {1e8f, 1.0f, -1e8f, 3.0f};
  return numbers[r % 4] + (float)(r % 4 == 1 ? i : 0);
}

/* Shards in the order of a tree, of which the last is longer, concurrently with the compute stream, which waits for
 * them by their number; and of the sums that all have. */
static void by_tree(size_t shard_size, size_t last) {
  int position = rt_world()->rank % 4;
  size_t all = 3 * shard_size + last, own = position < 3 ? shard_size : last;
  for (size_t i = 0; i < all; i++) host.whole[i] = in_place(rt_world()->rank, i);
  accel_gpu_write(arena->whole, host.whole, sizeof host.whole);
  accel_start_reduce_scatter_by_tree(ACCEL_DP_SHARD, arena->whole, arena->own, shard_size, last, arena->exchange);
  accel_start_all_reduce_by_tree(ACCEL_DP_SHARD, arena->whole, all, arena->exchange);
  accel_wait_reductions(1);
  accel_gpu_copy(accel_gpu_stream(ACCEL_COMPUTE), arena->own + own, arena->own, own * sizeof(float));
  accel_wait_collectives();
  accel_gpu_read(host.own, arena->own, sizeof host.own);
  accel_gpu_read(host.whole, arena->whole, sizeof host.whole);
  for (size_t i = 0; i < 2 * own; i++)
    require(host.own[i] == (float)((size_t)position * shard_size + i % own) + 4.0f, "a shard of sums in order");
  for (size_t i = 0; i < all; i++) require(host.whole[i] == (float)i + 4.0f, "sums in order");
}

/* Sums that are not the same in another order. */
static void in_order(void) {
  static const double numbers[] = {1e16, 1.0, -1e16, 1.0};
  double mine[] = {numbers[rt_world()->rank % 4], 1.0};
  accel_gpu_write(arena->doubles, mine, sizeof mine);
  accel_gpu_all_reduce_doubles(ACCEL_DP_SHARD, arena->doubles + 1, 1);
  accel_gpu_read(host.doubles, arena->doubles, sizeof mine);
  require(host.doubles[1] == 4.0, "doubles of the device");
  accel_all_reduce_doubles_by_tree(ACCEL_DP_SHARD, mine, 2);
  require(mine[0] == 2.0 && mine[1] == 4.0, "doubles of the host by a tree");
}

/* The largest of four ranks' numbers, and what is none; and the values of the first rank. */
static void largest(void) {
  double rank = (double)rt_world()->rank, mine[] = {rank, rank == 2.0 ? (double)NAN : 1e300, 0.25};
  accel_gpu_write(arena->doubles, mine, sizeof mine);
  accel_gpu_start_all_reduce_largest(ACCEL_DP_SHARD, arena->doubles, 3);
  accel_wait_collectives();
  accel_gpu_read(host.doubles, arena->doubles, sizeof mine);
  require(host.doubles[0] == (rank < 4.0 ? 3.0 : 7.0) && host.doubles[2] == 0.25, "the largest");
  require(rank < 4.0 ? isnan(host.doubles[1]) : host.doubles[1] == 1e300, "a NaN is the largest");
  accel_broadcast_values(ACCEL_DP_SHARD, arena->values, 8);
  accel_gpu_read(host.values, arena->values, 8 * sizeof(float));
  require(host.values[1] == sum_along(ACCEL_DP_REPLICATE, 1.0f) - 2.0f * (float)(rt_world()->rank % 4),
          "the first rank's");
}

static void sums(void) {
  open_all();
  struct accel_graph *graph = accel_gpu_capture("sums", record_sums);
  for (int i = 0; i < 3; i++) {
    fill();
    accel_gpu_launch(graph);
    check();
  }
  shards(40, 100);
  shards(0, 7);
  by_tree(40, 100);
  by_tree(128, 128);
  in_order();
  largest();
  double doubles[] = {(double)rt_world()->rank, 1.0};
  accel_all_reduce_doubles(ACCEL_DP_SHARD, doubles, 2);
  require(doubles[0] == sum_along(ACCEL_DP_SHARD, 1.0f) && doubles[1] == 4.0, "doubles of the host");
  int64_t counts[] = {rt_world()->rank};
  accel_all_reduce_counts(ACCEL_DP_REPLICATE, counts, 1);
  require(counts[0] == (int64_t)sum_along(ACCEL_DP_REPLICATE, 1.0f), "counts of the host");
  close_all();
}

static void forgets_to_wait(void) {
  open_all();
  fill();
  accel_start_all_reduce(ACCEL_DP_REPLICATE, arena->values, COUNT);
  accel_gpu_zero(accel_gpu_stream(ACCEL_COMPUTE), arena->values, 4);
  accel_wait_collectives();
  close_all();
}

static void forgets_to_join(void) {
  accel_start_all_reduce(ACCEL_DP_REPLICATE, arena->values, COUNT);
}
static void leaves_a_capture_open(void) {
  open_all();
  accel_gpu_capture("sums", forgets_to_join);
}

static void another_count(void) {
  open_all();
  accel_all_reduce(ACCEL_DP_SHARD, arena->values, rt_world()->rank == 6 ? 8 : 16);
  close_all();
}

static void another_kind(void) {
  open_all();
  if (rt_world()->rank == 6)
    accel_gpu_start_all_gather(ACCEL_DP_SHARD, ACCEL_FLOAT32, arena->own, arena->whole, 16);
  else
    accel_start_all_reduce(ACCEL_DP_SHARD, arena->values, 16);
  accel_wait_collectives();
  close_all();
}

static void one_less(void) {
  open_all();
  if (rt_world()->rank != 6) accel_all_reduce(ACCEL_DP_SHARD, arena->values, 16);
  close_all();
}

static void waits_for_error(void) {
  open_all();
  rt_world_await_end(0);
}

static void expect(struct ends ends, const char *said, const int *status, int otherwise) {
  bool right = strstr(ends.text, said) != NULL;
  for (int i = 0; i < 8; i++) right = right && (ends.status[i] == *status || ends.status[i] == otherwise);
  if (!right) {
    print_error("expected %d and '%s', got", *status, said);
    for (int i = 0; i < 8; i++) print_error(" %d", ends.status[i]);
    print_error("\n%s\n", ends.text);
  }
  assert_true(right);
}

static void test_collectives(void **state) {
  const int good = 0;
  (void)state;
  expect(in_ranks(sums, 8, "", NULL), "", &good, 0);
  expect(in_ranks(sums, 8, "ACCEL_GRAPHS=no", NULL), "", &good, 0);
  /* Without windows, and without any registration: slower on a GPU, and no other result. */
  expect(in_ranks(sums, 8, "STANDIN_FAIL=ncclCommWindowRegister", NULL), "", &good, 0);
}

/* GPUs that have not all that memory for several ranks is asked for, or have it and do not give it. */
static void test_memory(void **state) {
  static const char *const machines[] = {"STANDIN_RDMA=0 STANDIN_FABRIC=0", "STANDIN_FABRIC=1",
                                         "STANDIN_FAIL=cuDeviceGetAttribute"};
  const int good = 0, exit_status = 1;
  (void)state;
  for (size_t i = 0; i < sizeof machines / sizeof *machines; i++)
    expect(in_ranks(sums, 8, machines[i], NULL), "", &good, 0);
  expect(in_ranks(sums, 8, "STANDIN_HANDLES=0", NULL), "cuMemCreate of CUDA's driver", &exit_status, 1);
}

static void test_breaks(void **state) {
  const int found = STANDIN_STATUS, exit_status = 1;
  (void)state;
  expect(in_ranks(forgets_to_wait, 8, "", NULL), "without waiting for ncclAllReduce of stream 2 that", &found, 1);
  expect(in_ranks(leaves_a_capture_open, 8, "", NULL), "is not joined", &found, 1);
  expect(in_ranks(another_count, 8, "", NULL), "of its group does ncclAllReduce of ", &found, 1);
  expect(in_ranks(another_kind, 8, "", NULL), "of its group does ncclAll", &found, 1);
  expect(in_ranks(one_less, 8, "STANDIN_TIMEOUT=1", NULL), "did not come", &found, 1);
  expect(in_ranks(waits_for_error, 8, "STANDIN_ASYNC_ERROR=3", NULL), "rank 3: error: NCCL: unhandled system error",
         &exit_status, 1);
  expect(in_ranks(sums, 8, "STANDIN_FAIL=ncclAllReduce", NULL), "ncclAllReduce of NCCL: requested of the stand-in",
         &exit_status, 1);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_collectives), cmocka_unit_test(test_memory),
                                     cmocka_unit_test(test_breaks)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
