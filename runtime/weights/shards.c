#include "runtime/weights/shards.h"

#include "runtime/weights/torch_file.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/base/ending.h"

const char rt_diffusers_stem[] = "diffusion_pytorch_model";
static const char index_ending[] = ".index.json";

static bool open_mapped(struct shard *shard, const char *cure, struct problem *problem) {
  if (!rt_map(&shard->mapping, shard->path, cure, problem)) return false;
  const bool is_torch = rt_torch_is(shard->mapping.bytes, shard->mapping.size);
  return (is_torch ? rt_torch_read : rt_safetensors_read)(&shard->tensors, shard->path, shard->mapping.bytes,
                                                          shard->mapping.size, problem);
}

/* The header alone is mapped, until it has been read. */
static bool open_unmapped(struct shard *shard, const char *cure, struct problem *problem) {
  struct mapping header;
  uint8_t first[64] = {0};
  const uint8_t *bytes = first;
  size_t size;
  shard->file = rt_open_regular(shard->path, &size, cure, problem);
  if (shard->file < 0) return false;
  const ssize_t count = pread(shard->file, first, sizeof first, 0);
  if (count > 0 && rt_torch_is(first, (size_t)count)) return open_mapped(shard, cure, problem);
  const size_t length = count >= 8 ? rt_safetensors_header(first, size) : 0;
  const bool mapped = length > 0 && rt_map_part(&header, shard->file, 0, length, &bytes);
  if (length > 0 && !mapped)
    return rt_problem(problem, "%s: its header cannot be mapped: %s", shard->path, strerror(errno));
  const bool good = rt_safetensors_read(&shard->tensors, shard->path, bytes, size, problem);
  for (int i = 0; good && i < shard->tensors.count; i++) {
    shard->tensors.tensors[i].bytes = NULL;
    shard->tensors.tensors[i].file = shard->file;
  }
  if (mapped) rt_unmap(&header);
  return good;
}

static void close_one(struct shard *shard) {
  rt_safetensors_free(&shard->tensors);
  rt_unmap(&shard->mapping);
  if (shard->file >= 0) close(shard->file);
}

static bool open_one(struct shards *shards, const char *path, const char *cure, struct problem *problem) {
  struct shard *shard = &shards->items[shards->count];
  *shard = (struct shard){.file = -1};
  snprintf(shard->path, sizeof shard->path, "%s", path);
  if (!(shards->unmapped ? open_unmapped : open_mapped)(shard, cure, problem)) {
    close_one(shard);
    return false;
  }
  shards->count++;
  shards->n_tensors += shard->tensors.count;
  return true;
}

void rt_shards_forget(const struct shards *shards, const struct stored_tensor *tensor) {
  for (int i = 0; i < shards->count; i++) {
    const struct mapping *mapping = &shards->items[i].mapping;
    const uintptr_t first = (uintptr_t)mapping->bytes, at = (uintptr_t)tensor->bytes;
    if (mapping->size > 0 && at >= first && at < first + mapping->size) rt_map_forget(tensor->bytes, tensor->size);
  }
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

static bool open_named_by(struct shards *shards, const char *path, const json_t *map, struct problem *problem) {
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
    opened = open_named_by(shards, path, map, problem);
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
    for (int k = 0; k < shards->items[i].tensors.count; k++)
      shards->by_name[count++] = &shards->items[i].tensors.tensors[k];
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

static bool open_all(struct shards *shards, const char *path, const char *cure, struct problem *problem) {
  bool opened;
  if (rt_has_ending(path, index_ending)) {
    opened = open_index(shards, path, cure, problem);
  } else if (rt_has_ending(path, rt_parts_ending)) {
    opened = rt_parts_join(&shards->joined, path, cure, problem);
    shards->n_tensors = shards->joined.count;
  } else {
    shards->items = calloc(1, sizeof *shards->items);
    if (shards->items == NULL) return rt_problem(problem, "%s: no memory to open it", path);
    opened = open_one(shards, path, cure, problem);
  }
  return opened && sort_names(shards, path, problem);
}

/* The file, the index or the parts that the folder has of a stem. */
static bool find_stem(const char *folder, const char *stem, char *path, size_t size) {
  const char *const endings[] = {".safetensors", ".safetensors.index.json", rt_parts_ending};
  for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
    const int length = snprintf(path, size, "%s/%s%s", folder, stem, endings[i]);
    if (length > 0 && (size_t)length < size && access(path, F_OK) == 0) return true;
  }
  return false;
}

static bool find_pickled(const char *folder, char *path, size_t size) {
  static const char *const names[] = {"pytorch_model.bin", "pytorch_model.bin.index.json",
                                      "diffusion_pytorch_model.bin", "diffusion_pytorch_model.bin.index.json"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    const int length = snprintf(path, size, "%s/%s", folder, names[i]);
    if (length > 0 && (size_t)length < size && access(path, F_OK) == 0) return true;
  }
  return false;
}

bool rt_shards_of_folder(const char *folder, char *path, size_t size) {
  return find_stem(folder, "model", path, size) || find_stem(folder, rt_diffusers_stem, path, size) ||
         find_pickled(folder, path, size);
}

static bool open_named(struct shards *shards, const char *path, const char *cure, struct problem *problem) {
  const bool opened = open_all(shards, path, cure, problem);
  if (!opened) rt_shards_close(shards);
  return opened;
}

static bool open_stem(struct shards *shards, const char *folder, const char *stem, const char *cure,
                      struct problem *problem) {
  char path[4096];
  const int length = snprintf(path, sizeof path, "%s/%s.safetensors.index.json", folder, stem);
  if (length < 0 || (size_t)length >= sizeof path) return rt_problem(problem, "%.200s…: the path is too long", folder);
  if (!find_stem(folder, stem, path, sizeof path)) snprintf(path, sizeof path, "%s/%s.safetensors", folder, stem);
  return open_named(shards, path, cure, problem);
}

static bool open_path(struct shards *shards, const char *path, const char *cure, struct problem *problem) {
  char found[4096];
  if (!is_folder(path)) return open_named(shards, path, cure, problem);
  if (rt_shards_of_folder(path, found, sizeof found)) return open_named(shards, found, cure, problem);
  return open_stem(shards, path, "model", cure, problem);
}

bool rt_shards_open_in(struct shards *shards, const char *folder, const char *stem, const char *cure,
                       struct problem *problem) {
  *shards = (struct shards){0};
  return open_stem(shards, folder, stem, cure, problem);
}

bool rt_shards_open(struct shards *shards, const char *path, const char *cure, struct problem *problem) {
  *shards = (struct shards){0};
  return open_path(shards, path, cure, problem);
}

bool rt_shards_open_unmapped(struct shards *shards, const char *path, const char *cure, struct problem *problem) {
  *shards = (struct shards){.unmapped = true};
  return open_path(shards, path, cure, problem);
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
    close_one(&shards->items[i]);
  }
  rt_parts_free(&shards->joined);
  free(shards->items);
  free(shards->by_name);
  *shards = (struct shards){0};
}
