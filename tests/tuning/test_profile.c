/* A trace of a run: parts add up to the step, and steps that the system held up, or lucky ones, do not count. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "gen/commands/tune/profile.h"

static void put(FILE *file, const char *kind, const char *name, double microseconds) {
  fprintf(file, ",\n{\"name\": \"%s\", \"cat\": \"%s\", \"ph\": \"X\", \"dur\": %.3f}", name, kind, microseconds);
}

/* Steps of a matmul, twice a loop, and the rest, in microseconds. */
static struct step_profile read_trace(struct arena *arena, const double (*steps)[4], int count) {
  char path[] = "/tmp/profile-XXXXXX";
  struct step_profile profile;
  FILE *file = fdopen(mkstemp(path), "w");
  assert_non_null(file);
  fputs("{\"traceEvents\": [\n{\"name\": \"process_name\", \"ph\": \"M\"}", file);
  for (int i = 0; i < count; i++) {
    static const char *const names[] = {"matmul", "loop", "loop", "between parts"};
    double whole = 0;
    for (int k = 0; k < 4; k++) {
      put(file, "part", names[k], steps[i][k]);
      whole += steps[i][k];
    }
    put(file, "step", "step", whole);
  }
  fputs("\n]}\n", file);
  fclose(file);
  assert_true(profile_read(arena, path, &profile));
  remove(path);
  return profile;
}

static double seconds_of(const struct step_profile *profile, const char *name) {
  const struct profile_part *part = profile_find(profile, name);
  assert_non_null(part);
  return 1e6 * part->seconds;
}

/* Of eight steps the four in the middle. The medians of the parts would add up to 123, where the median step takes 168.
 */
static void test_parts_add_up(void **state) {
  struct arena *arena = arena_new();
  static const double steps[][4] = {{101, 10, 11, 1},   {101, 10, 11, 1},  {160, 10, 11, 1}, {101, 10, 51, 1},
                                    {101, 10, 11, 900}, {5000, 10, 11, 1}, {101, 10, 61, 1}, {121, 10, 11, 1}};
  (void)state;
  struct step_profile profile = read_trace(arena, steps, 8);
  assert_int_equal(profile.n_steps, 8);
  double sum = seconds_of(&profile, "matmul") + seconds_of(&profile, "loop") + seconds_of(&profile, "between parts");
  assert_true(fabs(sum - 1e6 * profile.step) < 1e-6);
  assert_true(fabs(1e6 * profile.step - (143 + 163 + 173 + 182) / 4.0) < 1e-6);
  assert_true(fabs(seconds_of(&profile, "matmul") - (121 + 101 + 101 + 160) / 4.0) < 1e-6);
  assert_true(profile_find(&profile, "loop")->times == 2 && profile_find(&profile, "matmul")->times == 1);
  assert_null(profile_find(&profile, "update"));
  arena_free(arena);
}

static void test_few_steps(void **state) {
  struct arena *arena = arena_new();
  static const double steps[][4] = {{10, 1, 1, 0}, {30, 1, 1, 0}, {20, 1, 1, 0}};
  (void)state;
  for (int count = 1; count <= 3; count++) {
    struct step_profile profile = read_trace(arena, steps, count);
    assert_true(fabs(seconds_of(&profile, "matmul") - (count == 1 ? 10 : 20)) < 1e-6);
  }
  arena_free(arena);
}

static void test_no_trace(void **state) {
  struct arena *arena = arena_new();
  struct step_profile profile;
  (void)state;
  assert_false(profile_read(arena, "/tmp/no/such/trace.json", &profile));
  arena_free(arena);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_parts_add_up),
      cmocka_unit_test(test_few_steps),
      cmocka_unit_test(test_no_trace),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
