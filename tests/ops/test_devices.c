/* Which operations have no kernel on GPUs: those of the table, and no others. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "gen/ir/op.h"

static const char *const missing[] = {
    "step_tensor",      /* written with the optimizer's update */
    "quantized_matmul", /* model.quantize is refused on GPUs */
    "int8_matmul",        "llm_int8_matmul",  "gguf_matmul", "q8_0_matmul", "fp8_matmul", /* becomes other nodes */
    "fp8_matmul_delayed", "fp8_group_matmul",
};

static bool has_kernel(const struct op_kind *kind) {
  char path[256];
  const char *name = kind->template_name != NULL ? kind->template_name : kind->name;
  snprintf(path, sizeof path, "templates/devices/gpu/%s.c.j2", name);
  if (access(path, R_OK) == 0) return true;
  snprintf(path, sizeof path, "templates/kernels/%s.c.j2", name);
  return access(path, R_OK) == 0;
}

static bool is_known(const char *name) {
  for (size_t i = 0; i < sizeof missing / sizeof *missing; i++)
    if (strcmp(missing[i], name) == 0) return true;
  return false;
}

static void test_kernels(void **state) {
  (void)state;
  int wrong = 0;
  for (int i = 0; i < op_file_count; i++)
    for (int k = 0; op_files[i]->kinds != NULL && op_files[i]->kinds[k] != NULL; k++) {
      const struct op_kind *kind = op_files[i]->kinds[k];
      if (kind->class != OP_KERNEL || has_kernel(kind) != is_known(kind->name)) continue;
      print_error("%s %s\n", kind->name, has_kernel(kind) ? "has a kernel now" : "has no kernel");
      wrong++;
    }
  assert_int_equal(wrong, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_kernels)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
