/* Any bytes as the index of shards, beside one whole shard: what is accepted holds that shard's tensors, each once. */
#include "runtime/shards.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static char folder[] = "/tmp/accel-index-XXXXXX", path[64];

static void prepare(void) {
  static float values[6];
  static char first[] = "a.weight", second[] = "a.bias";
  struct tensor_view tensors[] = {
      {.name = first, .rank = 2, .shape = {2, 2}, .bytes = (char *)values, .size = 16},
      {.name = second, .rank = 1, .shape = {2}, .bytes = (char *)&values[4], .size = 8},
  };
  struct problem problem;
  char shard[64];
  if (mkdtemp(folder) == NULL) abort();
  snprintf(shard, sizeof shard, "%s/a.safetensors", folder);
  snprintf(path, sizeof path, "%s/model.safetensors.index.json", folder);
  if (!rt_safetensors_write(shard, IN_PLACE, tensors, 2, NULL, &problem)) abort();
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
  if (shards.n_tensors != 2 * shards.count) __builtin_trap();
  for (int i = 0; i < shards.n_tensors; i++)
    if (rt_shards_find(&shards, shards.by_name[i]->name) != shards.by_name[i]) __builtin_trap();
  rt_shards_close(&shards);
  return 0;
}
