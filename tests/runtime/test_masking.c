/* Masking: the fractions of what happens to tokens, and that a window's draw depends on its position alone. */
#include "tests/runtime/cmocka_all.h"

#include <string.h>

#include "runtime/data/masking.h"

enum { LENGTH = 50000, VOCABULARY = 1000, MASK = 3 };

static int32_t tokens[LENGTH], targets[LENGTH], others[LENGTH], other_targets[LENGTH];

static void fill(int32_t *row) {
  for (int32_t t = 0; t < LENGTH; t++) row[t] = 100 + t % 900;
}

static bool near(int64_t count, double fraction) {
  return (double)count > (fraction - 0.01) * LENGTH && (double)count < (fraction + 0.01) * LENGTH;
}

static void fractions(void **state) {
  (void)state;
  const struct accel_masking masking = {.mask_token = MASK, .probability = 0.5, .random = 0.2, .keep = 0.3};
  fill(tokens);
  rt_mask(&masking, 7, 1, 3, LENGTH, VOCABULARY, tokens, targets);
  int64_t chosen = 0, hidden = 0, kept = 0;
  for (int32_t t = 0; t < LENGTH; t++) {
    int32_t before = 100 + t % 900;
    assert_true(targets[t] == ACCEL_NO_TARGET ? tokens[t] == before : targets[t] == before);
    assert_in_range(tokens[t], 0, VOCABULARY - 1);
    chosen += targets[t] != ACCEL_NO_TARGET;
    hidden += tokens[t] == MASK;
    kept += targets[t] != ACCEL_NO_TARGET && tokens[t] == before;
  }
  assert_true(near(chosen, 0.5) && near(hidden, 0.25) && near(kept, 0.15));
}

static void a_function_of_the_position(void **state) {
  (void)state;
  const struct accel_masking masking = {.mask_token = MASK, .probability = 0.15, .random = 0.1, .keep = 0.1};
  fill(tokens), fill(others);
  rt_mask(&masking, 7, 1, 3, LENGTH, VOCABULARY, tokens, targets);
  rt_mask(&masking, 7, 1, 3, LENGTH, VOCABULARY, others, other_targets);
  assert_memory_equal(tokens, others, sizeof tokens);
  assert_memory_equal(targets, other_targets, sizeof targets);
  fill(others);
  rt_mask(&masking, 7, 1, 4, LENGTH, VOCABULARY, others, other_targets);
  assert_memory_not_equal(targets, other_targets, sizeof targets);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(fractions), cmocka_unit_test(a_function_of_the_position)};
  return cmocka_run_group_tests_name("masking", tests, NULL, NULL);
}
