/* Any bytes as the index of parts of ranks, beside the parts of one: what is accepted is made of those. */
#include "runtime/shards.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static char folder[] = "/tmp/accel-parts-XXXXXX", path[64];
static float values[6] = {1, 2, 3, 4, 5, 6};

static void prepare(void) {
  static char first[] = "a.weight[0:4]", second[] = "a.bias[0:2]";
  struct tensor_view tensors[] = {
      {.name = first, .rank = 1, .shape = {4}, .bytes = (char *)values, .size = 16},
      {.name = second, .rank = 1, .shape = {2}, .bytes = (char *)&values[4], .size = 8},
  };
  struct problem problem;
  char part[64];
  if (mkdtemp(folder) == NULL) abort();
  snprintf(part, sizeof part, "%s/model-00001-of-00001.safetensors", folder);
  snprintf(path, sizeof path, "%s/model.safetensors.parts.json", folder);
  if (!rt_safetensors_write(part, IN_PLACE, tensors, 2, NULL, &problem)) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
  struct shards shards;
  struct problem problem;
  if (path[0] == '\0') prepare();
  FILE *file = fopen(path, "wb");
  if (file == NULL || fwrite(bytes, 1, size, file) != size || fclose(file) != 0) abort();
  if (!rt_shards_open(&shards, path, "", &problem)) {
    if (strstr(problem.what, folder) == NULL) __builtin_trap();
    return 0;
  }
  const struct stored_tensor *weight = rt_shards_find(&shards, "a.weight");
  if (weight == NULL || weight->size != 16 || memcmp(weight->bytes, values, 16) != 0) __builtin_trap();
  rt_shards_close(&shards);
  return 0;
}
