#include "runtime/weights/shards.h"

#include "runtime/weights/torch_file.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char index_ending[] = ".index.json", file_ending[] = ".safetensors";

static bool open_one(struct shards *shards, const char *path, const char *cure, struct problem *problem) {
  struct shard *shard = &shards->items[shards->count];
  snprintf(shard->path, sizeof shard->path, "%s", path);
  if (!rt_map(&shard->mapping, path, cure, problem)) return false;
  const bool is_torch = rt_torch_is(shard->mapping.bytes, shard->mapping.size);
  if (!(is_torch ? rt_torch_read : rt_safetensors_read)(&shard->file, shard->path, shard->mapping.bytes,
                                                        shard->mapping.size, problem)) {
    rt_unmap(&shard->mapping);
    return false;
  }
  shards->count++;
  shards->n_tensors += shard->file.count;
  return true;
}

static bool is_open(const struct shards *shards, const char *path) {
  for (int i = 0; i < shards->count; i++)
    if (strcmp(shards->items[i].path, path) == 0) return true;
  return false;
}

/* The folder of `path`, with its slash; empty where it has none. */
static void folder_of(char *out, size_t size, const char *path) {
  const char *slash = strrchr(path, '/');
  snprintf(out, size, "%.*s", slash != NULL ? (int)(slash + 1 - path) : 0, path);
}

static bool is_plain(const char *name) {
  return name[0] != '\0' && strchr(name, '/') == NULL && strlen(name) < 256;
}

static bool open_mapped(struct shards *shards, const char *path, const json_t *map, struct problem *problem) {
  char folder[4096], file[4096 + 256];
  const char *tensor;
  json_t *entry;
  folder_of(folder, sizeof folder, path);
  shards->items = calloc(json_object_size(map) + 1, sizeof *shards->items);
  if (shards->items == NULL) return rt_problem(problem, "%s: no memory for the list of files", path);
  json_object_foreach((json_t *)map, tensor, entry) {
    const char *name = json_string_value(entry);
    if (name == NULL || !is_plain(name))
      return rt_problem(problem, "%s: the file of tensor '%.200s' is not a plain name", path, tensor);
    snprintf(file, sizeof file, "%s%s", folder, name);
    if (!is_open(shards, file) && !open_one(shards, file, "give all files that the index names", problem)) return false;
  }
  return true;
}

static bool open_index(struct shards *shards, const char *path, const char *cure, struct problem *problem) {
  struct mapping mapping;
  json_error_t error;
  if (!rt_map(&mapping, path, cure, problem)) return false;
  json_t *root = json_loadb((const char *)mapping.bytes, mapping.size, JSON_REJECT_DUPLICATES, &error);
  const json_t *map = json_object_get(root, "weight_map");
  bool opened = false;
  if (root == NULL)
    rt_problem(problem, "%s: byte %d: the index is not JSON: %s", path, error.position, error.text);
  else if (!json_is_object(map))
    rt_problem(problem, "%s: the index has no 'weight_map'", path);
  else
    opened = open_mapped(shards, path, map, problem);
  json_decref(root);
  rt_unmap(&mapping);
  return opened;
}

static int by_name(const void *a, const void *b) {
  return strcmp((*(const struct stored_tensor *const *)a)->name, (*(const struct stored_tensor *const *)b)->name);
}

static bool sort_names(struct shards *shards, const char *path, struct problem *problem) {
  int count = 0;
  shards->by_name = calloc((size_t)shards->n_tensors + 1, sizeof *shards->by_name);
  if (shards->by_name == NULL) return rt_problem(problem, "%s: no memory for the list of tensors", path);
  for (int i = 0; i < shards->count; i++)
    for (int k = 0; k < shards->items[i].file.count; k++) shards->by_name[count++] = &shards->items[i].file.tensors[k];
  for (int i = 0; i < shards->joined.count; i++) shards->by_name[count++] = &shards->joined.tensors[i];
  qsort(shards->by_name, (size_t)count, sizeof *shards->by_name, by_name);
  for (int i = 1; i < count; i++)
    if (strcmp(shards->by_name[i - 1]->name, shards->by_name[i]->name) == 0)
      return rt_problem(problem, "%s: two files hold a tensor '%.200s'", path, shards->by_name[i]->name);
  return true;
}

static bool is_folder(const char *path) {
  struct stat status;
  return stat(path, &status) == 0 && S_ISDIR(status.st_mode);
}

static bool ends_with(const char *text, const char *ending) {
  size_t length = strlen(text), end = strlen(ending);
  return length >= end && strcmp(text + length - end, ending) == 0;
}

static bool open_all(struct shards *shards, const char *path, const char *cure, struct problem *problem) {
  bool opened;
  if (ends_with(path, index_ending)) {
    opened = open_index(shards, path, cure, problem);
  } else if (ends_with(path, rt_parts_ending)) {
    opened = rt_parts_join(&shards->joined, path, cure, problem);
    shards->n_tensors = shards->joined.count;
  } else {
    shards->items = calloc(1, sizeof *shards->items);
    if (shards->items == NULL) return rt_problem(problem, "%s: no memory to open it", path);
    opened = open_one(shards, path, cure, problem);
  }
  return opened && sort_names(shards, path, problem);
}

/* The file of PyTorch that a folder has in place of model.safetensors, or the index of several; NULL: none. */
static const char *find_pickled(const char *folder, const char *stem, char *path, size_t size) {
  static const char *const names[] = {"pytorch_model.bin", "pytorch_model.bin.index.json"};
  for (size_t i = 0; i < sizeof names / sizeof *names && strcmp(stem, "model") == 0; i++) {
    snprintf(path, size, "%s/%s", folder, names[i]);
    if (access(path, F_OK) == 0) return path;
  }
  return NULL;
}

bool rt_shards_open_in(struct shards *shards, const char *folder, const char *stem, const char *cure,
                       struct problem *problem) {
  char path[4096], index[4096 + 16], parts[4096 + 16], pickled[4096 + 64];
  int length = snprintf(path, sizeof path, "%s/%s.safetensors", folder, stem);
  if (length < 0 || (size_t)length >= sizeof path) return rt_problem(problem, "%.200s…: the path is too long", folder);
  snprintf(index, sizeof index, "%s%s", path, index_ending);
  snprintf(parts, sizeof parts, "%.*s%s", length - (int)strlen(file_ending), path, rt_parts_ending);
  const char *found = access(path, F_OK) == 0    ? path
                      : access(index, F_OK) == 0 ? index
                      : access(parts, F_OK) == 0 ? parts
                                                 : find_pickled(folder, stem, pickled, sizeof pickled);
  return rt_shards_open(shards, found != NULL ? found : path, cure, problem);
}

bool rt_shards_open(struct shards *shards, const char *path, const char *cure, struct problem *problem) {
  *shards = (struct shards){0};
  if (is_folder(path)) return rt_shards_open_in(shards, path, "model", cure, problem);
  bool opened = open_all(shards, path, cure, problem);
  if (!opened) rt_shards_close(shards);
  return opened;
}

const struct stored_tensor *rt_shards_find(const struct shards *shards, const char *name) {
  struct stored_tensor wanted = {.name = name};
  const struct stored_tensor *key = &wanted, **found = NULL;
  if (shards->n_tensors > 0)
    found = bsearch(&key, shards->by_name, (size_t)shards->n_tensors, sizeof *shards->by_name, by_name);
  return found != NULL ? *found : NULL;
}

void rt_shards_close(struct shards *shards) {
  for (int i = 0; i < shards->count; i++) {
    rt_safetensors_free(&shards->items[i].file);
    rt_unmap(&shards->items[i].mapping);
  }
  rt_parts_free(&shards->joined);
  free(shards->items);
  free(shards->by_name);
  *shards = (struct shards){0};
}
