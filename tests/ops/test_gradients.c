/* Every function's gradient against central differences in float64, on random shapes.
 *
 * usage: test_gradients [--print SEED]
 * SEED=N repeats a run; SHAPES=N tries so many shapes of each function, else 3. --print writes every case as a line of
 * JSON, for test_against_torch.py. */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "tests/ops/cases.h"

enum { SHAPES = 3, PRINTED_SHAPES = 6 };

/* The seed of the run; a case's own follows from it, so that cases do not depend on each other. */
static uint64_t run_seed;
static int shapes = SHAPES;

static struct fixture *arranged(int number, int round) {
  struct fixture *fixture = fixture_new(run_seed + (uint64_t)number * 1000 + (uint64_t)round);
  op_case_at(number)->arrange(fixture);
  return fixture;
}

static void check_case(void **state) {
  int number = (int)(intptr_t)*state;
  const struct op_case *at = op_case_at(number);
  for (int round = 0; round < shapes; round++) {
    struct fixture *fixture = arranged(number, round);
    struct value *y = fixture_call(fixture, at->function);
    if (y == NULL) diag_print(&fixture->diags, stderr, false);
    assert_non_null(y);
    struct fixture_result result = fixture_measure(fixture, y);
    if (!(result.worst < 1e-7))
      fail_msg("%s, seed %" PRIu64 ", shapes %d: the gradient of %s is %g off\n%s", at->function, run_seed, round,
               result.worst_name, result.worst, graph_text(fixture->arena, result.graph));
    fixture_free(fixture);
  }
}

static int print_cases(void) {
  for (int i = 0; op_case_at(i) != NULL; i++)
    for (int round = 0; round < PRINTED_SHAPES; round++) {
      const char *function = op_case_at(i)->function;
      struct fixture *fixture = arranged(i, round);
      struct value *y = fixture_call(fixture, function);
      if (y == NULL) diag_print(&fixture->diags, stderr, false);
      if (y == NULL) return 1;
      struct fixture_result result = fixture_differentiate(fixture, y);
      fixture_print(stdout, fixture, function, &result);
      fixture_free(fixture);
    }
  return 0;
}

int main(int argc, char **argv) {
  const char *wanted = getenv("SEED"), *more = getenv("SHAPES");
  if (more != NULL) shapes = atoi(more);
  run_seed = wanted != NULL ? strtoull(wanted, NULL, 10) : (uint64_t)time(NULL);
  if (argc == 3 && strcmp(argv[1], "--print") == 0) {
    run_seed = strtoull(argv[2], NULL, 10);
    return print_cases();
  }
  fprintf(stderr, "seed %" PRIu64 " (SEED=%" PRIu64 " repeats this run)\n", run_seed, run_seed);
  int count = 0;
  while (op_case_at(count) != NULL) count++;
  struct CMUnitTest *tests = calloc((size_t)count, sizeof *tests);
  if (tests == NULL) return 1;
  for (int i = 0; i < count; i++)
    tests[i] = (struct CMUnitTest){
        .name = op_case_at(i)->function, .test_func = check_case, .initial_state = (void *)(intptr_t)i};
  int failed = _cmocka_run_group_tests("gradients", tests, (size_t)count, NULL, NULL);
  free(tests);
  return failed;
}
