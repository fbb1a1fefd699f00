/* Cadences: every event is met, none is met twice, the end is the end. */
#include "cmocka_all.h"

#include "runtime/run/cadences.h"

static void all_cadences_together(void **state) {
  (void)state;
  for (int64_t log = 0; log < 8; log++)
    for (int64_t eval = 0; eval < 8; eval++)
      for (int64_t save = 0; save < 8; save++) {
        struct cadences cadences = {.steps = 23, .log_every = log, .eval_every = eval, .save_every = save};
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
  struct cadences cadences = {.steps = 100, .log_every = 10, .eval_every = 30, .save_every = 40};
  assert_true(rt_events_eval(&cadences, 90) && rt_events_eval(&cadences, 100) && !rt_events_eval(&cadences, 40));
  assert_true(rt_events_save(&cadences, 80) && rt_events_save(&cadences, 100) && !rt_events_save(&cadences, 30));
  cadences.eval_every = cadences.save_every = 0;
  assert_true(!rt_events_eval(&cadences, 100) && rt_events_save(&cadences, 100));
}

static void a_delay_leaves_out_evaluations_but_the_last(void **state) {
  (void)state;
  struct cadences cadences = {.steps = 100, .eval_every = 30, .eval_delay = 60};
  assert_true(!rt_events_eval(&cadences, 30) && rt_events_eval(&cadences, 60) && rt_events_eval(&cadences, 100));
  cadences.eval_delay = 0;
  cadences.eval_delay_epochs = (struct cadence){61, 1};
  assert_true(!rt_events_eval(&cadences, 60) && rt_events_eval(&cadences, 90));
  cadences.eval_delay = INT64_MAX;
  assert_true(!rt_events_eval(&cadences, 90) && rt_events_eval(&cadences, 100));
}

static void a_run_may_begin_anywhere(void **state) {
  (void)state;
  struct cadences cadences = {.steps = 100, .log_every = 10, .eval_every = 30};
  assert_int_equal(rt_events_next(&cadences, 57), 60);
  assert_int_equal(rt_events_next(&cadences, 99), 100);
}

static void huge_cadences_do_not_overflow(void **state) {
  (void)state;
  struct cadences cadences = {.steps = INT64_MAX, .log_every = INT64_MAX, .eval_every = INT64_MAX - 1, .save_every = 3};
  assert_int_equal(rt_events_next(&cadences, INT64_MAX - 1), INT64_MAX);
  assert_int_equal(rt_events_next(&cadences, 1), 3);
}

/* What is due after the step that takes the last micro-batch of a part, by counting them. */
static void check_epochs(const struct accumulation *accumulation, struct accel_epochs epochs) {
  struct cadences cadences = {.steps = 1000, .save_epochs = rt_accumulation_cadence(accumulation, epochs)};
  int64_t last = 0;
  for (int64_t at = 1; at < 200; at++) {
    const struct accel_micro_batches micro_batches = rt_accumulation_of(accumulation, at - 1);
    const int64_t micro = micro_batches.first + micro_batches.count, epoch = accumulation->in_epoch;
    int64_t parts = micro * epochs.parts / (epoch * epochs.count);
    if (accumulation->with_epochs &&
        epochs.parts > 1) { /* parts are whole steps of an epoch, whose last one may be short */
      int64_t steps = (epoch + accumulation->in_step - 1) / accumulation->in_step;
      parts = at / steps * epochs.parts + at % steps * epochs.parts / steps;
    }
    assert_int_equal(rt_events_save(&cadences, at), parts > last);
    assert_int_equal(rt_events_next(&cadences, at - 1) == at, parts > last || at == 1);
    last = parts;
  }
}

static void epochs_end_in_steps(void **state) {
  (void)state;
  for (int64_t in_epoch = 1; in_epoch < 20; in_epoch += 3)
    for (int64_t in_step = 1; in_step < 6; in_step++)
      for (int64_t n = 1; n < 4; n++) {
        struct accumulation accumulation = {in_epoch, in_step, false};
        for (int i = 0; i < 2; i++, accumulation.with_epochs = true) {
          check_epochs(&accumulation, (struct accel_epochs){n, 1});
          check_epochs(&accumulation, (struct accel_epochs){1, n});
        }
      }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(all_cadences_together),
      cmocka_unit_test(evaluation_and_saving_close_a_run),
      cmocka_unit_test(a_delay_leaves_out_evaluations_but_the_last),
      cmocka_unit_test(a_run_may_begin_anywhere),
      cmocka_unit_test(huge_cadences_do_not_overflow),
      cmocka_unit_test(epochs_end_in_steps),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
