/* The steps of a schedule against Accelerate's rule for several ranks. What follows from them, the rates, is held to
 * Accelerate itself by tests/optimizer/test_schedules.py. */
#include "gen/program/schedule.h"

#include "tests/spec/cmocka_all.h"

static void ranks(void **state) {
  (void)state;
  assert_int_equal(schedule_per_step(1, false), 1);
  assert_int_equal(schedule_per_step(8, false), 8);
  assert_int_equal(schedule_per_step(8, true), 1);
}

static void samples(void **state) {
  struct job job = {.data.batch_size = 3, .accumulation.num_steps = 2, .training.steps = 100};
  (void)state;
  job.schedule.warmup_samples = 13;
  job.schedule.decay_samples = 60;
  assert_int_equal(schedule_steps(&job).warmup, 3);
  assert_int_equal(schedule_steps(&job).decay, 10);
  assert_int_equal(schedule_steps(&job).per_step, 1);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(ranks), cmocka_unit_test(samples)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
