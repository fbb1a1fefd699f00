/* Any bytes as a .npy file; what is accepted is read to its last element, as rows and as tokens. */
#include "runtime/data/rows.h"
#include "runtime/data/tokens.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

/* As a float32 input of `width` numbers and as an int32 one. */
static void read_rows(const struct npy *npy, int64_t width) {
  const struct accel_input inputs[] = {{"x", NULL, ACCEL_FLOAT32, width, 0, 0, false},
                                       {"y", NULL, ACCEL_INT32, width, 200, -1, true}};
  const struct accel_program program = {.inputs = inputs, .n_inputs = 2};
  struct rows rows = rt_rows_begin(&program);
  struct problem problem;
  int32_t numbers[64];
  double found;
  if (!rt_rows_add_array(&rows, 0, npy, "fuzz", &problem) || !rt_rows_add_array(&rows, 1, npy, "fuzz", &problem))
    return;
  for (int64_t row = 0; row < rows.count; row++)
    for (int i = 0; i < 2; i++) rt_rows_load(&rows, row, i, numbers, &found);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
  struct npy npy;
  struct tokens tokens;
  struct problem problem;
  int32_t window[64];
  if (!rt_npy_find(&npy, "fuzz", bytes, size, &problem)) return 0;
  for (int64_t i = 0; i < npy.count; i++) rt_npy_at(npy.type, npy.elements, i);
  for (int64_t width = 1; width <= 64; width++) read_rows(&npy, width);
  if (rt_tokens_find(&tokens, ACCEL_NPY_TOKENS, "fuzz", bytes, size, &problem))
    for (int64_t i = 0; i < tokens.count; i += 64)
      rt_tokens_copy(&tokens, i, tokens.count - i < 64 ? tokens.count - i : 64, window);
  return 0;
}
