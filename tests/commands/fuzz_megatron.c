/* Any bytes as the two files of a dataset of Megatron: documents begin in order, at tokens that are there. */
#include <stdlib.h>

#include "gen/dataset/megatron.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
  struct problem problem = {0};
  struct tokens tokens;
  if (size == 0) return 0;
  size_t of_bin = bytes[0] < size ? bytes[0] : size - 1;
  struct dataset_file bin = {"fuzz.bin", bytes + 1, of_bin}, idx = {"fuzz.idx", bytes + 1 + of_bin, size - 1 - of_bin};
  if (!megatron_find(&tokens, idx, bin, NULL, &problem)) {
    if (problem.what[0] == '\0') __builtin_trap();
    return 0;
  }
  if (tokens.count > 0 && (tokens.documents == 0 || rt_tokens_start(&tokens, 0) != 0)) __builtin_trap();
  for (int64_t i = 0; i < tokens.documents; i++)
    if (rt_tokens_start(&tokens, i) >= rt_tokens_start(&tokens, i + 1)) __builtin_trap();
  for (int64_t i = 0; i < tokens.count; i++) {
    int32_t token;
    rt_tokens_copy(&tokens, i, 1, &token);
    if (token < 0) __builtin_trap();
  }
  free((void *)(uintptr_t)tokens.starts);
  return 0;
}
