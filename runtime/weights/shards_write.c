#include "runtime/weights/shards.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The end of the shard that begins with tensor `first`. */
static int end_of_shard(const struct tensor_list *tensors, int first, uint64_t most) {
  uint64_t bytes = tensors->items[first].size;
  int end = first + 1;
  while (end < tensors->count && (most == 0 || bytes + tensors->items[end].size <= most))
    bytes += tensors->items[end++].size;
  return end;
}

static int count_shards(const struct tensor_list *tensors, uint64_t most) {
  int count = 0;
  for (int first = 0; first < tensors->count; first = end_of_shard(tensors, first, most)) count++;
  return count;
}

/* A manifest is of a folder that is moved there as a whole. */
static enum placing placing_of(const struct manifest *manifest) {
  return manifest != NULL ? IN_PLACE : BY_RENAME;
}

static bool write_file(const char *folder, const char *name, const struct tensor_view *tensors, int count,
                       struct manifest *manifest, struct problem *problem) {
  char path[4096];
  struct file_sum sum;
  return rt_join(path, sizeof path, folder, name, problem) &&
         rt_safetensors_write(path, placing_of(manifest), tensors, count, &sum, NULL, problem) &&
         (manifest == NULL || rt_manifest_add(manifest, name, sum, problem));
}

static bool write_index(const char *folder, const char *name, json_t *root, struct manifest *manifest,
                        struct problem *problem) {
  char path[4096];
  struct file_sum sum;
  char *text = json_dumps(root, JSON_INDENT(2) | JSON_SORT_KEYS);
  bool written = text != NULL && rt_join(path, sizeof path, folder, name, problem) &&
                 rt_write_file(path, placing_of(manifest), text, strlen(text), &sum, problem) &&
                 (manifest == NULL || rt_manifest_add(manifest, name, sum, problem));
  if (text == NULL) rt_problem(problem, "%s: no memory for %s", folder, name);
  free(text);
  return written;
}

/* All shards, and in `map` which tensor is in which. */
static bool write_shards(const char *folder, const char *stem, const struct tensor_list *tensors, uint64_t most,
                         json_t *map, struct manifest *manifest, struct problem *problem) {
  int count = count_shards(tensors, most), number = 0;
  for (int first = 0, end; first < tensors->count; first = end) {
    char name[160];
    end = end_of_shard(tensors, first, most);
    snprintf(name, sizeof name, "%.100s-%05d-of-%05d.safetensors", stem, ++number, count);
    for (int i = first; i < end; i++) json_object_set_new(map, tensors->items[i].name, json_string(name));
    if (!write_file(folder, name, &tensors->items[first], end - first, manifest, problem)) return false;
  }
  return true;
}

/* Whoever reads the folder takes the single file before the index: only one of them may be there. */
static bool remove_other(const char *folder, const char *name, struct problem *problem) {
  char path[4096];
  if (!rt_join(path, sizeof path, folder, name, problem)) return false;
  if (unlink(path) == 0 || errno == ENOENT) return true;
  return rt_problem(problem, "%s: cannot be removed: %s", path, strerror(errno));
}

bool rt_shards_remove(const char *folder, const char *stem, struct problem *problem) {
  char whole[160], index[160];
  snprintf(whole, sizeof whole, "%.100s.safetensors", stem);
  snprintf(index, sizeof index, "%.100s.safetensors.index.json", stem);
  return remove_other(folder, whole, problem) && remove_other(folder, index, problem);
}

bool rt_shards_write(const char *folder, const char *stem, const struct tensor_list *tensors, uint64_t most,
                     struct manifest *manifest, struct problem *problem) {
  char whole[160], index[160];
  snprintf(whole, sizeof whole, "%.100s.safetensors", stem);
  snprintf(index, sizeof index, "%.100s.safetensors.index.json", stem);
  if (count_shards(tensors, most) <= 1)
    return write_file(folder, whole, tensors->items, tensors->count, manifest, problem) &&
           remove_other(folder, index, problem);
  json_int_t bytes = 0;
  for (int i = 0; i < tensors->count; i++) bytes += (json_int_t)tensors->items[i].size;
  json_t *map = json_object();
  json_t *root = json_pack("{s:{s:I}, s:o}", "metadata", "total_size", bytes, "weight_map", map);
  bool written = root != NULL && write_shards(folder, stem, tensors, most, map, manifest, problem) &&
                 write_index(folder, index, root, manifest, problem) && remove_other(folder, whole, problem);
  if (root == NULL) rt_problem(problem, "%s: no memory for the index", folder);
  json_decref(root);
  return written;
}
