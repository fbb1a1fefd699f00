/* Messages between stages of a pipeline, over the stand-in of NCCL: ranks in a ring send to both neighbours at a time
 * and overwrite what they have sent. What a program must not do is found. */
#include "include/accel/gpu/collectives.h"
#include "runtime/process/world.h"
#include "tests/cuda/standin/standin.h"
#include "tests/runtime/cmocka_all.h"
#include "tests/tcp/children.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RANKS = 4, COUNT = 1000, ROUNDS = 3, BYTES = COUNT * sizeof(float) };

struct arena {
  _Alignas(64) float own[COUNT], next[COUNT], before[COUNT];
  _Alignas(256) char workspace[256];
};

static const char *const architectures[] = {"sm_90", NULL};
static const struct accel_gpu_plan plan = {.architectures = architectures,
                                           .arena_bytes = sizeof(struct arena),
                                           .workspace_offset = offsetof(struct arena, workspace),
                                           .workspace_bytes = 256,
                                           .ahead = 2};
static struct accel_program program = {.timeout = 200, .arena_bytes = sizeof(struct arena)};
static struct arena *arena, host;
static int ranks, own, next, before;

static void open_all(void) {
  struct problem problem;
  rt_world_join();
  own = rt_world()->rank;
  ranks = rt_world()->ranks;
  next = (own + 1) % ranks;
  before = (own + ranks - 1) % ranks;
  program.mesh[ACCEL_PP] = ranks;
  if (!rt_world_divide(&program, &problem)) rt_fail_together(&problem, 2);
  accel_gpu_open(&program, &plan);
  accel_gpu_open_collectives(&program);
  arena = accel_gpu_arena();
}

static void close_all(void) {
  accel_gpu_close();
  rt_world_leave();
}

static void write_own(float value) {
  for (int i = 0; i < COUNT; i++) host.own[i] = value;
  accel_gpu_write(arena->own, host.own, BYTES);
}

static void require(bool good, const char *what) {
  if (good) return;
  fprintf(stderr, "rank %d: wrong: %s\n", own, what);
  exit(9);
}

static void exchange(void) {
  open_all();
  for (int round = 0; round < ROUNDS; round++) {
    write_own((float)(10 * round + own));
    accel_start_send(ACCEL_PP, next, arena->own, BYTES);
    accel_start_send(ACCEL_PP, before, arena->own, BYTES);
    accel_take(ACCEL_PP, next, arena->next, BYTES);
    accel_take(ACCEL_PP, before, arena->before, BYTES);
    accel_wait_send(arena->own);
    accel_gpu_zero(accel_gpu_stream(ACCEL_COMPUTE), arena->own, BYTES);
    accel_gpu_read(&host, arena, sizeof host);
    require(host.next[COUNT - 1] == (float)(10 * round + next), "what the next rank sends");
    require(host.before[0] == (float)(10 * round + before), "what the rank before sends");
  }
  close_all();
}

static void add_pairs(void) {
  open_all();
  write_own((float)own);
  accel_add_other(ACCEL_PP, own ^ 1, arena->own, COUNT);
  accel_gpu_read(&host, arena, sizeof host);
  require(host.own[COUNT - 1] == (float)(own + (own ^ 1)), "a sum of two");
  close_all();
}

/* Ranks 0 and 2 of four, which are no neighbours, add up; then the sum goes from the lower one to the higher one's. */
static void add_distant_pair(void) {
  static const struct accel_stage_pair pairs[] = {{0, 2}};
  program.stage_pairs = pairs;
  program.n_stage_pairs = 1;
  open_all();
  write_own((float)(own + 1));
  if (own % 2 == 0) accel_add_other(ACCEL_PP, 2 - own, arena->own, COUNT);
  if (own == 0) accel_send(ACCEL_PP, 2, arena->own, BYTES);
  if (own == 2) accel_receive(ACCEL_PP, 0, arena->next, BYTES);
  accel_gpu_read(&host, arena, sizeof host);
  require(host.own[COUNT - 1] == (own % 2 == 0 ? 4.0f : (float)(own + 1)), "a sum of two that are no neighbours");
  require(own != 2 || host.next[0] == 4.0f, "what a rank that is no neighbour sends");
  close_all();
}

static void overwrites(void) {
  open_all();
  accel_start_send(ACCEL_PP, next, arena->own, BYTES);
  accel_gpu_zero(accel_gpu_stream(ACCEL_COMPUTE), arena->own, BYTES);
  accel_receive(ACCEL_PP, before, arena->before, BYTES);
  close_all();
}

static void skips_a_rank(void) {
  open_all();
  accel_start_send(ACCEL_PP, (own + 2) % ranks, arena->own, BYTES);
  close_all();
}

static void shares_a_queue(void) {
  open_all();
  setenv("CUDA_DEVICE_MAX_CONNECTIONS", "8", 1);
  accel_start_send(ACCEL_PP, next, arena->own, BYTES);
  accel_receive(ACCEL_PP, before, arena->before, BYTES);
  close_all();
}

static void waits_for_none(void) {
  open_all();
  if (own != 0) accel_receive(ACCEL_PP, before, arena->before, BYTES);
  close_all();
}

static void expect_good(void (*body)(void), int count, const char *environment) {
  const struct ends ends = in_ranks(body, count, environment, NULL);
  for (int i = 0; i < count; i++)
    if (ends.status[i] != 0) print_error("rank %d: %d\n%s\n", i, ends.status[i], ends.text);
  for (int i = 0; i < count; i++) assert_int_equal(ends.status[i], 0);
}

/* Some rank ends with the status, and says that. */
static void expect_end(void (*body)(void), const char *environment, int status, const char *said) {
  const struct ends ends = in_ranks(body, RANKS, environment, NULL);
  bool found = false;
  for (int i = 0; i < RANKS; i++) found |= ends.status[i] == status;
  if (!found || strstr(ends.text, said) == NULL) print_error("%s\nis not in\n%s\n", said, ends.text);
  assert_true(found);
  assert_non_null(strstr(ends.text, said));
}

static void test_messages(void **state) {
  (void)state;
  for (int count = 2; count <= RANKS; count++) expect_good(exchange, count, "");
  for (int count = 2; count <= RANKS; count += 2) expect_good(add_pairs, count, "");
  expect_good(add_distant_pair, RANKS, "");
}

/* The environment of whoever starts ranks may let all streams share one queue. */
static void test_queues(void **state) {
  (void)state;
  expect_good(exchange, RANKS, "CUDA_DEVICE_MAX_CONNECTIONS=1");
  expect_end(shares_a_queue, "", STANDIN_STATUS, "in 8 queues");
}

static void test_breaks(void **state) {
  (void)state;
  expect_end(overwrites, "", STANDIN_STATUS, "without waiting for ncclSend");
  expect_end(skips_a_rank, "", 1, "along pp is not a neighbour of this one, nor of `stage_pairs`");
  expect_end(waits_for_none, "STANDIN_TIMEOUT=1", STANDIN_STATUS, "did not come");
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_messages), cmocka_unit_test(test_queues),
                                     cmocka_unit_test(test_breaks)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
