/* Any bytes as the index of shards, next to one whole shard, and as that of parts, next to those of one rank: what is
 * accepted holds that shard's tensors, each once, or is made of those parts. */
#include "runtime/weights/shards.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static char folder[] = "/tmp/accel-index-XXXXXX";
static float values[6] = {1, 2, 3, 4, 5, 6};

static void write_tensors(const char *file, char *first, char *second, int rank) {
  struct tensor_view tensors[] = {
      {.name = first, .rank = rank, .shape = {rank == 2 ? 2 : 4, 2}, .bytes = (char *)values, .size = 16},
      {.name = second, .rank = 1, .shape = {2}, .bytes = (char *)&values[4], .size = 8},
  };
  struct problem problem;
  char path[64];
  snprintf(path, sizeof path, "%s/%s", folder, file);
  if (!rt_safetensors_write(path, IN_PLACE, tensors, 2, NULL, NULL, &problem)) abort();
}

static void prepare(void) {
  static char names[][16] = {"a.weight", "a.bias", "a.weight[0:4]", "a.bias[0:2]"};
  if (mkdtemp(folder) == NULL) abort();
  write_tensors("a.safetensors", names[0], names[1], 2);
  write_tensors("model-00001-of-00001.safetensors", names[2], names[3], 1);
}

/* Whether the bytes are accepted as this file. */
static bool open_as(struct shards *shards, const char *name, const uint8_t *bytes, size_t size) {
  struct problem problem;
  char path[64];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  FILE *file = fopen(path, "wb");
  if (file == NULL || fwrite(bytes, 1, size, file) != size || fclose(file) != 0) abort();
  if (rt_shards_open(shards, path, "", &problem)) return true;
  if (strstr(problem.what, folder) == NULL) __builtin_trap();
  return false;
}

static void check_parts(const struct shards *shards) {
  for (int i = 0; i < shards->n_tensors; i++) {
    const struct stored_tensor *tensor = shards->by_name[i];
    bool weight = strcmp(tensor->name, "a.weight") == 0, bias = strcmp(tensor->name, "a.bias") == 0;
    if (tensor->size > 0 && !(weight && tensor->size == 16) && !(bias && tensor->size == 8)) __builtin_trap();
    if (tensor->size > 0 && memcmp(tensor->bytes, weight ? values : &values[4], tensor->size) != 0) __builtin_trap();
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
  static bool is_ready;
  struct shards shards;
  if (!is_ready) prepare();
  is_ready = true;
  if (open_as(&shards, "model.safetensors.parts.json", bytes, size)) {
    check_parts(&shards);
    rt_shards_close(&shards);
  }
  if (!open_as(&shards, "model.safetensors.index.json", bytes, size)) return 0;
  if (shards.n_tensors != 2 * shards.count) __builtin_trap();
  for (int i = 0; i < shards.n_tensors; i++)
    if (rt_shards_find(&shards, shards.by_name[i]->name) != shards.by_name[i]) __builtin_trap();
  rt_shards_close(&shards);
  return 0;
}
