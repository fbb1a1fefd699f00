/* Any bytes as a file of torch.save: read, and when accepted, every byte that its tensors claim is touched. */
#include "runtime/weights/torch_file.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
  struct safetensors file;
  struct problem problem;
  if (!rt_torch_read(&file, "fuzz", bytes, size, &problem)) return 0;
  volatile uint8_t sink = 0;
  for (int i = 0; i < file.count; i++) {
    if (file.tensors[i].size > size) __builtin_trap();
    for (size_t k = 0; k < file.tensors[i].size; k++) sink ^= file.tensors[i].bytes[k];
    sink ^= (uint8_t)strlen(file.tensors[i].name);
  }
  rt_safetensors_free(&file);
  return 0;
}
