/* Ranks that start without MPI: they meet, exchange messages, and end together, whatever happens to one of them.
 */
#include "runtime/base/clock.h"
#include "runtime/process/fail.h"
#include "runtime/process/world.h"
#include "runtime/tcp/socket.h"
#include "tests/runtime/cmocka_all.h"
#include "tests/tcp/children.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct accel_program eight = {.mesh = {2, 4}, .timeout = 100};

static void start_of(const struct accel_program *program) {
  struct problem problem;
  rt_world_join();
  if (!rt_world_divide(program, &problem)) rt_fail_together(&problem, 2);
}

static void require(bool good) {
  if (!good) exit(9);
}

/* ---- What ranks send each other ---- */

/* In the order of the calls, and to rank 0 alone. */
static void bring(void) {
  float own[8], there[32];
  for (int i = 0; i < 8; i++) own[i] = (float)(10 * rt_world()->rank + i);
  for (int i = 0; i < 32; i++) there[i] = -1.0f;
  for (int r = 0; r < 4; r++) rt_world_bring(r, own, there + 8 * r, (r < 3 ? 8 : 3) * sizeof *own);
  for (int i = 0; i < 32; i++)
    require(there[i] == (rt_world()->rank == 0 && i < 27 ? (float)(10 * (i / 8) + i % 8) : -1.0f));
  for (int r = 0; r < 8; r += 4) rt_world_bring(r, own, there + 2 * r, sizeof own);
  for (int i = 0; i < 16 && rt_world()->rank == 0; i++) require(there[i] == (float)(40 * (i / 8) + i % 8));
}

static void talk(void) {
  static int64_t values[100000], all[8 * 1000];
  start_of(&eight);
  const struct world *world = rt_world();
  require(world->ranks == 8 && world->local_ranks == 8 && world->local_rank == world->rank);
  for (int round = 0; round < 20; round++) {
    for (int i = 0; i < 100000; i++) values[i] = world->rank == 0 ? round * i : -1;
    rt_world_broadcast(values, sizeof values);
    for (int i = 0; i < 100000; i++) require(values[i] == (int64_t)round * i);
    for (int i = 0; i < 1000; i++) values[i] = world->rank * 1000 + i + round;
    rt_world_gather(values, all, 1000 * sizeof *values);
    for (int i = 0; i < 8000; i++) require(all[i] == i + round);
    for (int i = 0; i < 100; i++) values[i] = world->rank == round % 8 ? round + i : -1;
    rt_user_broadcast(values, 100 * sizeof *values, round % 8, "a value");
    for (int i = 0; i < 100; i++) require(values[i] == round + i);
    values[0] = world->rank;
    rt_user_gather(values, all, sizeof *values, "values");
    for (int i = 0; i < 8; i++) require(all[i] == i);
    require(rt_world_largest(world->rank == round % 8 ? 1000 + round : world->rank) == 1000 + round);
  }
  bring();
  rt_world_leave();
}

static void expect_all(const struct ends *ends, int count, int status, const char *said) {
  bool right = strstr(ends->text, said) != NULL;
  for (int i = 0; i < count; i++) right = right && ends->status[i] == status;
  if (!right) {
    print_error("expected %d and '%s', got", status, said);
    for (int i = 0; i < count; i++) print_error(" %d", ends->status[i]);
    print_error("\n%s\n", ends->text);
  }
  assert_true(right);
}

static int count_of(const char *text, const char *part) {
  int count = 0;
  for (const char *at = text; (at = strstr(at, part)) != NULL; at++) count++;
  return count;
}

static void test_talk(void **state) {
  (void)state;
  struct ends ends = in_ranks(talk, 8, "", NULL);
  expect_all(&ends, 8, 0, "");
  ends = in_ranks(talk, 8, "MASTER_ADDR=localhost", NULL);
  expect_all(&ends, 8, 0, "");
  assert_string_equal(ends.text, "");
}

static void alone(void) {
  int64_t own = 3, all = 0;
  start_of(&(struct accel_program){.timeout = 5});
  rt_world_gather(&own, &all, sizeof own);
  require(all == 3 && rt_world_largest(7) == 7 && rt_world()->local_ranks == 1);
  rt_world_leave();
}

static void test_alone(void **state) {
  (void)state;
  struct ends ends = in_child(alone, "");
  expect_all(&ends, 1, 0, "");
  ends = in_child(alone, "WORLD_SIZE=1 RANK=0");
  expect_all(&ends, 1, 0, "");
}

/* Positions on machines: as starters say, else by the names of hosts. */
static void positions(void) {
  start_of(&(struct accel_program){.mesh = {4}, .timeout = 100});
  const struct world *world = rt_world();
  require(world->local_ranks == 2 && world->local_rank == world->rank % 2);
  rt_world_leave();
}

static void test_places(void **state) {
  static const char *const own[] = {"LOCAL_RANK=0", "LOCAL_RANK=1", "LOCAL_RANK=0", "LOCAL_RANK=1"};
  (void)state;
  struct ends ends = in_ranks(positions, 4, "LOCAL_WORLD_SIZE=2", own);
  expect_all(&ends, 4, 0, "");
}

/* ---- What goes wrong at start ---- */

static void start_four(void) {
  if (getenv("ABSENT") != NULL) exit(1);
  start_of(&(struct accel_program){.mesh = {4}, .timeout = 100});
  rt_world_leave();
}

static void test_start(void **state) {
  static const char *const missing[] = {"", "", "ABSENT=1", ""};
  static const char *const other[] = {"", "", "WORLD_SIZE=5", ""};
  static const char *const twice[] = {"", "", "RANK=1", ""};
  (void)state;
  struct ends ends = in_ranks(start_four, 4, "ACCEL_START_TIMEOUT=8", missing);
  expect_all(&ends, 4, 1, "rank 0: error: 1 of 4 ranks did not come within 8 s: 2");
  /* A rank that comes when rank 0 has answered already knocks for as long as it may. */
  ends = in_ranks(start_four, 4, "ACCEL_START_TIMEOUT=30", other);
  expect_all(&ends, 4, 1, "rank 2 was started as one of 5 ranks, rank 0 as one of 4");
  ends = in_ranks(start_four, 4, "ACCEL_START_TIMEOUT=30", twice);
  expect_all(&ends, 4, 1, "two processes say that they are rank 1");
  ends = in_ranks(start_four, 3, "ACCEL_START_TIMEOUT=100", NULL);
  expect_all(&ends, 3, 2, "3 processes started, but this program is for 4 ranks");
  assert_int_equal(count_of(ends.text, "error"), 1);
  ends = in_child(start_four, "RANK=1 WORLD_SIZE=2 ACCEL_START_TIMEOUT=1 MASTER_PORT=1");
  expect_all(&ends, 1, 1,
             "rank 1: error: rank 0 was not to be reached at 127.0.0.1, port 1, within 1 s: Connection refused");
  ends = in_child(start_four, "RANK=1 WORLD_SIZE=2 MASTER_ADDR=no-such-machine.invalid RES_OPTIONS=timeout:1");
  expect_all(&ends, 1, 1, "MASTER_ADDR no-such-machine.invalid, MASTER_PORT 29500:");
  ends = in_child(start_four, "RANK=x WORLD_SIZE=2");
  expect_all(&ends, 1, 1, "RANK is 'x', which is no number of a rank");
  ends = in_child(start_four, "RANK=4 WORLD_SIZE=4");
  expect_all(&ends, 1, 1, "rank 4 of 4: RANK must be below WORLD_SIZE");
  ends = in_child(start_four, "WORLD_SIZE=4");
  expect_all(&ends, 1, 1, "WORLD_SIZE is 4, but RANK is not set");
}

static void test_port_in_use(void **state) {
  struct problem problem;
  char port[16], environment[64];
  (void)state;
  int holder;
  snprintf(port, sizeof port, "%d", hold_port(&holder));
  snprintf(environment, sizeof environment, "MASTER_PORT=%s RANK=0 WORLD_SIZE=2", port);
  int taken = rt_listen("127.0.0.1", port, &problem);
  assert_true(taken >= 0);
  struct ends ends = in_child(start_four, environment);
  expect_all(&ends, 1, 1, "rank 0 cannot listen at 127.0.0.1");
  close(taken);
  close(holder);
}

/* ---- Who is no rank ---- */

static void with_strangers(void) {
  static const char *const sayings[] = {"", "GET /index.html HTTP/1.1\r\n\r\n",
                                        "ACL1\0\0\0\0\0\0\0\0\0\0\0\0\377\377\377\377\377\377\0"};
  if (atoi(getenv("RANK")) == 3) {
    for (int i = 0; i < 3; i++) {
      struct problem problem;
      int socket = rt_connect("127.0.0.1", getenv("MASTER_PORT"), rt_now() + 100, &problem);
      rt_send_all(socket, sayings[i], i == 2 ? 24 : strlen(sayings[i]), rt_now() + 100);
      if (i < 2) close(socket);
    }
  }
  start_four();
}

static void test_strangers(void **state) {
  (void)state;
  struct ends ends = in_ranks(with_strangers, 4, "ACCEL_START_TIMEOUT=100", NULL);
  expect_all(&ends, 4, 0, "rank 0: warning: what came is no message of a rank");
}

/* ---- Ends ---- */

static int chosen(void) {
  return atoi(getenv("CHOSEN")) == rt_world()->rank;
}

static void one_fails(void) {
  struct problem problem;
  start_of(&eight);
  rt_problem(&problem, "something is wrong here");
  if (chosen()) rt_fail(&problem, 3);
  rt_world_largest(1);
}

static void one_is_killed(void) {
  start_of(&eight);
  if (chosen()) raise(SIGKILL);
  rt_world_largest(1);
  rt_world_largest(2);
}

/* The others are busy, as with work on a device, and do not listen. */
static void one_fails_others_work(void) {
  struct problem problem;
  start_of(&eight);
  rt_problem(&problem, "something is wrong here");
  if (chosen()) rt_fail(&problem, 3);
  sleep(30);
}

static void one_is_bad(void) {
  struct problem problem;
  start_of(&eight);
  rt_problem(&problem, "this one has no file");
  rt_world_require(!chosen(), &problem, 4);
}

static void one_stays(void) {
  start_of(&(struct accel_program){.mesh = {4}, .timeout = 8});
  if (chosen()) sleep(30);
  rt_world_largest(1);
}

static void one_is_elsewhere(void) {
  int64_t value = 0;
  start_of(&(struct accel_program){.mesh = {4}, .timeout = 100});
  if (chosen()) rt_world_broadcast(&value, sizeof value);
  rt_world_largest(1);
}

static void test_ends(void **state) {
  (void)state;
  for (int who = 0; who < 8; who += 5) {
    char environment[32];
    snprintf(environment, sizeof environment, "CHOSEN=%d", who);
    struct ends ends = in_ranks(one_fails, 8, environment, NULL);
    expect_all(&ends, 8, 3, "error: something is wrong here");
    assert_int_equal(count_of(ends.text, "error"), 1);
    ends = in_ranks(one_fails_others_work, 8, environment, NULL);
    expect_all(&ends, 8, 3, "error: something is wrong here");
    ends = in_ranks(one_is_bad, 8, environment, NULL);
    expect_all(&ends, 8, 4, "error: this one has no file");
    assert_int_equal(count_of(ends.text, "error"), 1);
  }
  struct ends ends = in_ranks(one_is_killed, 8, "CHOSEN=5", NULL);
  assert_int_equal(ends.status[5], 128 + SIGKILL);
  ends.status[5] = 1;
  expect_all(&ends, 8, 1, "rank 0: error: rank 5 has ended without a word");
  assert_int_equal(count_of(ends.text, "error"), 1);
  ends = in_ranks(one_is_killed, 8, "CHOSEN=0", NULL);
  ends.status[0] = 1;
  expect_all(&ends, 8, 1, "rank 0 has ended without a word");
  ends = in_ranks(one_stays, 4, "CHOSEN=2", NULL);
  expect_all(&ends, 4, 1, "rank 2 did not come within 8 s");
  ends = in_ranks(one_is_elsewhere, 4, "CHOSEN=0", NULL);
  expect_all(&ends, 4, 1, "is at another point of the program");
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_talk),        cmocka_unit_test(test_alone),
                                     cmocka_unit_test(test_places),      cmocka_unit_test(test_start),
                                     cmocka_unit_test(test_port_in_use), cmocka_unit_test(test_strangers),
                                     cmocka_unit_test(test_ends)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
