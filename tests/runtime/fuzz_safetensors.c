/* Any bytes as a safetensors file: read, and when accepted, every byte that its tensors claim is touched. */
#include "runtime/weights/safetensors.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
  struct safetensors file;
  struct problem problem;
  if (!rt_safetensors_read(&file, "fuzz", bytes, size, &problem)) return 0;
  size_t claimed = 0;
  volatile uint8_t sink = 0;
  for (int i = 0; i < file.count; i++) {
    for (size_t k = 0; k < file.tensors[i].size; k++) sink ^= file.tensors[i].bytes[k];
    claimed += file.tensors[i].size;
  }
  if (claimed > size) __builtin_trap();
  rt_safetensors_free(&file);
  return 0;
}
