/* Cadences: every event is met, none is met twice, the end is the end. */
#include "cmocka_all.h"

#include "runtime/run/cadences.h"

static void all_cadences_together(void **state) {
  (void)state;
  for (int64_t log = 0; log < 8; log++)
    for (int64_t eval = 0; eval < 8; eval++)
      for (int64_t save = 0; save < 8; save++) {
        struct cadences cadences = {23, log, eval, save, 0, 0};
        int64_t at = 0;
        for (int64_t step = 1; step <= 23; step++) {
          bool due = (log && step % log == 0) || (eval && step % eval == 0) || (save && step % save == 0);
          bool stop = due || step == 1 || step == 23;
          assert_int_equal(rt_events_next(&cadences, step - 1) == step, stop);
          assert_int_equal(rt_events_line(&cadences, step), due || step == 23);
          if (stop) at = rt_events_next(&cadences, at);
          assert_true(at <= step);
        }
        assert_int_equal(at, 23);
      }
}

static void evaluation_and_saving_close_a_run(void **state) {
  (void)state;
  struct cadences cadences = {100, 10, 30, 40, 0, 0};
  assert_true(rt_events_eval(&cadences, 90) && rt_events_eval(&cadences, 100) && !rt_events_eval(&cadences, 40));
  assert_true(rt_events_save(&cadences, 80) && rt_events_save(&cadences, 100) && !rt_events_save(&cadences, 30));
  cadences.eval_every = cadences.save_every = 0;
  assert_true(!rt_events_eval(&cadences, 100) && rt_events_save(&cadences, 100));
}

static void a_run_may_begin_anywhere(void **state) {
  (void)state;
  struct cadences cadences = {100, 10, 30, 0, 0, 0};
  assert_int_equal(rt_events_next(&cadences, 57), 60);
  assert_int_equal(rt_events_next(&cadences, 99), 100);
}

static void huge_cadences_do_not_overflow(void **state) {
  (void)state;
  struct cadences cadences = {INT64_MAX, INT64_MAX, INT64_MAX - 1, 3, 0, 0};
  assert_int_equal(rt_events_next(&cadences, INT64_MAX - 1), INT64_MAX);
  assert_int_equal(rt_events_next(&cadences, 1), 3);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(all_cadences_together),
      cmocka_unit_test(evaluation_and_saving_close_a_run),
      cmocka_unit_test(a_run_may_begin_anywhere),
      cmocka_unit_test(huge_cadences_do_not_overflow),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
