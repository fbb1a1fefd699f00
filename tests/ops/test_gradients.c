/* Every function's gradient against central differences in float64, on random shapes.
 *
 * usage: test_gradients [--print SEED]
 * SEED=N repeats a run. --print writes every case as a line of JSON, for test_against_torch.py. */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "tests/ops/cases.h"

enum { SHAPES = 6 };

/* The seed of the run; a case's own follows from it, so that cases do not depend on each other. */
static uint64_t run_seed;

static struct lab *arranged(int number, int round) {
  struct lab *lab = lab_new(run_seed + (uint64_t)number * 1000 + (uint64_t)round);
  op_case_at(number)->arrange(lab);
  return lab;
}

static void check_case(void **state) {
  int number = (int)(intptr_t)*state;
  const struct op_case *at = op_case_at(number);
  for (int round = 0; round < SHAPES; round++) {
    struct lab *lab = arranged(number, round);
    struct value *y = lab_call(lab, at->function);
    if (y == NULL) diag_print(&lab->diags, stderr, false);
    assert_non_null(y);
    struct lab_result result = lab_measure(lab, y);
    if (!(result.worst < 1e-7))
      fail_msg("%s, seed %" PRIu64 ", shapes %d: the gradient of %s is %g off\n%s", at->function, run_seed, round,
               result.worst_name, result.worst, graph_text(lab->arena, result.graph));
    lab_free(lab);
  }
}

static int print_cases(void) {
  for (int i = 0; op_case_at(i) != NULL; i++)
    for (int round = 0; round < SHAPES; round++) {
      const char *function = op_case_at(i)->function;
      struct lab *lab = arranged(i, round);
      struct value *y = lab_call(lab, function);
      if (y == NULL) diag_print(&lab->diags, stderr, false);
      if (y == NULL) return 1;
      struct lab_result result = lab_measure(lab, y);
      lab_print(stdout, lab, function, &result);
      lab_free(lab);
    }
  return 0;
}

int main(int argc, char **argv) {
  const char *wanted = getenv("SEED");
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
