/* Which window or row a position is. */
#include "cmocka_all.h"

#include "runtime/data/accumulation.h"
#include "runtime/data/mixture.h"

#include <stdlib.h>

/* In file order: window after window, and again from the start. */
static void unshuffled(void **state) {
  (void)state;
  struct order order = rt_order_of_sequences(1, ACCEL_TRAIN, false, 100, 65, 16);
  assert_int_equal(order.samples, 4);
  for (int64_t i = 0; i < 8; i++) assert_int_equal(rt_order_start(&order, i), 100 + 16 * (i % 4));
}

/* The last window and the token after it end exactly at the end, or one token is missing. */
static void edges(void **state) {
  (void)state;
  assert_int_equal(rt_order_of_sequences(1, ACCEL_TRAIN, true, 0, 16, 16).samples, 0);
  assert_int_equal(rt_order_of_sequences(1, ACCEL_TRAIN, true, 0, 17, 16).samples, 1);
  assert_int_equal(rt_order_of_sequences(1, ACCEL_TRAIN, true, 0, 0, 16).samples, 0);
  assert_int_equal(rt_order_of_sequences(1, ACCEL_TRAIN, false, 0, 33, 16).samples, 2);
  assert_int_equal(rt_order_of_sequences(1, ACCEL_TRAIN, false, 0, 32, 16).samples, 1);
}

/* For every length of file: an epoch has every window of its grid once, all inside the file with their target. */
static void shuffled_epochs_cover(void **state) {
  enum { LENGTH = 7, FIRST = 1000 };
  (void)state;
  for (int64_t count = LENGTH + 1; count < 80; count++) {
    struct order order = rt_order_of_sequences(42, ACCEL_TRAIN, true, FIRST, count, LENGTH);
    for (int64_t epoch = 0; epoch < 5; epoch++) {
      bool seen[16] = {false};
      int64_t first = rt_order_start(&order, epoch * order.samples) % LENGTH;
      for (int64_t i = 0; i < order.samples; i++) {
        int64_t start = rt_order_start(&order, epoch * order.samples + i);
        assert_true(start >= FIRST && start + LENGTH + 1 <= FIRST + count);
        assert_int_equal(start % LENGTH, first); /* one offset an epoch */
        assert_false(seen[(start - FIRST) / LENGTH]);
        seen[(start - FIRST) / LENGTH] = true;
      }
    }
  }
}

/* Offsets and orders differ between epochs, and every cut is seen over many. */
static void epochs_differ(void **state) {
  bool offset[16] = {false};
  int same = 0;
  (void)state;
  struct order order = rt_order_of_sequences(42, ACCEL_TRAIN, true, 0, 16000, 16);
  for (int64_t epoch = 0; epoch < 200; epoch++) {
    int64_t start = rt_order_start(&order, epoch * order.samples);
    offset[start % 16] = true;
    same += start / 16 == rt_order_start(&order, 0) / 16;
  }
  for (int i = 0; i < 16; i++) assert_true(offset[i]);
  assert_true(same < 5);
}

static void seeds_and_splits_differ(void **state) {
  int same_seed = 0, same_split = 0;
  (void)state;
  struct order order = rt_order_of_rows(1, ACCEL_TRAIN, true, 0, 1000), other = order;
  other.seed = 2;
  struct order eval = rt_order_of_rows(1, ACCEL_EVAL, true, 0, 1000);
  for (int64_t i = 0; i < 1000; i++) {
    same_seed += rt_order_start(&order, i) == rt_order_start(&other, i);
    same_split += rt_order_start(&order, i) == rt_order_start(&eval, i);
  }
  assert_true(same_seed < 10 && same_split < 10);
}

/* Evaluation repeats the same samples for ever, shuffled or not, without an offset. */
static void evaluation_is_fixed(void **state) {
  (void)state;
  struct order order = rt_order_of_sequences(42, ACCEL_EVAL, true, 50, 161, 16);
  assert_int_equal(order.samples, 10);
  for (int64_t i = 0; i < 10; i++) {
    assert_int_equal(rt_order_start(&order, i), rt_order_start(&order, i + 10));
    assert_int_equal((rt_order_start(&order, i) - 50) % 16, 0);
  }
}

static void far_positions(void **state) {
  (void)state;
  struct order order = rt_order_of_sequences(42, ACCEL_TRAIN, true, 0, INT64_C(1) << 40, 1024);
  int64_t start = rt_order_start(&order, INT64_MAX);
  assert_true(start >= 0 && start + 1025 <= INT64_C(1) << 40);
}

/* Rows after the last whole batch of an epoch are left out; shuffled, others in the next epoch. */
static void whole_batches(void **state) {
  (void)state;
  for (int shuffle = 0; shuffle < 2; shuffle++) {
    struct mixture mixture;
    struct order order = rt_order_of_rows(1, ACCEL_TRAIN, shuffle, 0, 11);
    bool seen[11] = {false};
    assert_true(rt_mixture_make(&mixture, &order, NULL, 1, 0, (struct batch_sharding){.batch = 4, .ranks = 1}));
    assert_int_equal(mixture.taken, 8);
    for (int64_t i = 0; i < 80; i++) {
      int64_t start = rt_mixture_find(&mixture, i).start;
      if (!shuffle) assert_int_equal(start, i % 8);
      seen[start] = true;
    }
    for (int i = 0; i < 11; i++) assert_int_equal(seen[i], shuffle || i < 8);
    rt_mixture_free(&mixture);
  }
}

/* The micro-batches of all steps are those of the run, one after another, and no step has some of two epochs. */
static void micro_batches_of_steps(void **state) {
  (void)state;
  for (int64_t in_epoch = 1; in_epoch < 12; in_epoch++)
    for (int64_t in_step = 1; in_step < 6; in_step++) {
      struct accumulation accumulation = {in_epoch, in_step, true};
      int64_t next = 0;
      for (int64_t at = 0; at < 40; at++) {
        assert_int_equal(rt_accumulation_steps(&accumulation, next), at);
        struct accel_micro_batches micro_batches = rt_accumulation_of(&accumulation, at);
        assert_int_equal(micro_batches.first, next);
        assert_in_range(micro_batches.count, 1, in_step);
        next += micro_batches.count;
        assert_int_equal(micro_batches.first / in_epoch, (next - 1) / in_epoch);
        assert_true(micro_batches.count == in_step || next % in_epoch == 0);
      }
      accumulation.with_epochs = false;
      assert_int_equal(rt_accumulation_of(&accumulation, 7).first, 7 * in_step);
      assert_int_equal(rt_accumulation_of(&accumulation, 7).count, in_step);
      assert_int_equal(rt_accumulation_steps(&accumulation, 7 * in_step + 1), 8);
    }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(unshuffled),
      cmocka_unit_test(edges),
      cmocka_unit_test(shuffled_epochs_cover),
      cmocka_unit_test(epochs_differ),
      cmocka_unit_test(seeds_and_splits_differ),
      cmocka_unit_test(evaluation_is_fixed),
      cmocka_unit_test(far_positions),
      cmocka_unit_test(whole_batches),
      cmocka_unit_test(micro_batches_of_steps),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
