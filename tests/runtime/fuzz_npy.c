/* Any bytes as a .npy file; what is accepted is read to its last element, as rows and as tokens. */
#include "runtime/data/rows.h"
#include "runtime/data/tokens.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
  struct npy npy;
  struct tokens tokens;
  struct rows rows;
  struct problem problem;
  float features[64];
  int32_t window[64];
  if (!rt_npy_find(&npy, "fuzz", bytes, size, &problem)) return 0;
  for (int64_t i = 0; i < npy.count; i++) rt_npy_at(npy.type, npy.elements, i);
  for (int64_t width = 1; width <= 64; width++)
    if (rt_rows_of_arrays(&rows, &npy, "fuzz", &npy, "fuzz", width, &problem))
      for (int64_t row = 0; row < rows.count; row++) rt_rows_load(&rows, row, features);
  if (rt_tokens_find(&tokens, ACCEL_NPY_TOKENS, "fuzz", bytes, size, &problem))
    for (int64_t i = 0; i < tokens.count; i += 64)
      rt_tokens_copy(&tokens, i, tokens.count - i < 64 ? tokens.count - i : 64, window);
  return 0;
}
