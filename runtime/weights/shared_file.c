#include "runtime/weights/shared_file.h"

#include "runtime/process/world.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* FNV-1a, over all that says which file it is. */
static uint64_t mix(uint64_t hash, uint64_t value) {
  for (int i = 0; i < 8; i++) hash = (hash ^ (value >> 8 * i & 0xff)) * UINT64_C(0x100000001b3);
  return hash;
}

/* 0: not to be shared. */
static uint64_t identity(const struct weights_file *file) {
  uint64_t hash = UINT64_C(0xcbf29ce484222325);
  if (file == NULL) return 0;
  for (int k = 0; k < file->sources.count; k++) {
    const struct shards *shards = &file->sources.items[k];
    if (shards->joined.count > 0) return 0;
    for (int i = 0; i < shards->count; i++) {
      struct stat status;
      if (stat(shards->items[i].path, &status) != 0) return 0;
      hash = mix(mix(hash, status.st_ino), (uint64_t)status.st_size);
      hash = mix(mix(hash, (uint64_t)status.st_mtim.tv_sec), (uint64_t)status.st_mtim.tv_nsec);
    }
  }
  return hash != 0 ? hash : 1;
}

bool rt_weights_are_shared(const struct weights_file *file) {
  const uint64_t own = identity(file);
  uint64_t first = own;
  rt_world_broadcast(&first, sizeof first);
  return rt_world_largest(own == 0 || own != first) == 0;
}
