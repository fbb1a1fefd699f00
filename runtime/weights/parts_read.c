#define _DEFAULT_SOURCE /* MAP_ANONYMOUS */
#include "runtime/base/dtype.h"
#include "runtime/files/mapping.h"
#include "runtime/weights/parts.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

const char rt_parts_ending[] = ".safetensors.parts.json";

enum { MOST_RANKS = 1 << 20 };
static const size_t alignment = 64;

/* While tensors are joined. */
struct joining {
  struct joined *joined;
  const char *path; /* of the index */
  size_t *filled;   /* by tensor: bytes that are there */
  struct problem *problem;
};

/* ---- The index ---- */

static bool read_shape(struct stored_tensor *tensor, const json_t *shape) {
  int64_t count = 1;
  if (!json_is_array(shape) || json_array_size(shape) > sizeof tensor->shape / sizeof *tensor->shape) return false;
  tensor->rank = (int)json_array_size(shape);
  for (int d = 0; d < tensor->rank; d++) {
    const json_t *extent = json_array_get(shape, (size_t)d);
    tensor->shape[d] = json_integer_value(extent);
    if (!json_is_integer(extent) || tensor->shape[d] < 0) return false;
    if (tensor->shape[d] > 0 && count > INT64_MAX / 16 / tensor->shape[d]) return false;
    count *= tensor->shape[d];
  }
  return true;
}

static bool read_entry(struct stored_tensor *tensor, const char *name, const json_t *entry) {
  const char *dtype = json_string_value(json_object_get(entry, "dtype"));
  size_t size = dtype != NULL ? rt_stored_size(dtype) : 0;
  *tensor = (struct stored_tensor){.name = name};
  if (size == 0 || !read_shape(tensor, json_object_get(entry, "shape"))) return false;
  snprintf(tensor->dtype, sizeof tensor->dtype, "%s", dtype);
  tensor->size = (size_t)rt_shape_count(tensor->rank, tensor->shape) * size;
  return true;
}

/* Names and shapes, each tensor right after the one before; the bytes of all. */
static bool read_tensors(struct joining *joining, json_t *entries) {
  struct joined *joined = joining->joined;
  const char *name;
  json_t *entry;
  joined->tensors = calloc(json_object_size(entries) + 1, sizeof *joined->tensors);
  joining->filled = calloc(json_object_size(entries) + 1, sizeof *joining->filled);
  if (joined->tensors == NULL || joining->filled == NULL)
    return rt_problem(joining->problem, "%s: no memory for the list of tensors", joining->path);
  json_object_foreach(entries, name, entry) {
    struct stored_tensor *tensor = &joined->tensors[joined->count];
    if (!read_entry(tensor, name, entry) || joined->size > SIZE_MAX / 4 - tensor->size)
      return rt_problem(joining->problem, "%s: the entry '%.200s' is not a type and a shape", joining->path, name);
    json_object_set_new(entry, "number", json_integer(joined->count++));
    joined->size += (tensor->size + alignment - 1) / alignment * alignment;
  }
  return true;
}

static bool take_memory(struct joining *joining) {
  struct joined *joined = joining->joined;
  if (joined->size == 0) return true;
  void *memory = mmap(NULL, joined->size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED)
    return rt_problem(joining->problem, "%s: no memory for %zu bytes of tensors: %s", joining->path, joined->size,
                      strerror(errno));
  joined->memory = memory;
  uint8_t *at = memory;
  for (int i = 0; i < joined->count; i++) {
    joined->tensors[i].bytes = at;
    at += (joined->tensors[i].size + alignment - 1) / alignment * alignment;
  }
  return true;
}

/* ---- The parts ---- */

/* "NAME[FIRST:END]" apart; false for what is no such name. */
static bool read_name(const char *text, char *name, size_t size, int64_t *first, int64_t *end) {
  const char *bracket = strrchr(text, '[');
  int length = 0;
  if (bracket == NULL || (size_t)(bracket - text) >= size) return false;
  if (sscanf(bracket, "[%" SCNd64 ":%" SCNd64 "]%n", first, end, &length) != 2 || bracket[length] != '\0') return false;
  snprintf(name, size, "%.*s", (int)(bracket - text), text);
  return *first >= 0 && *end >= *first;
}

/* A part goes after those that came before. */
static bool add_part(void *context, const char *path, const struct stored_tensor *part) {
  struct joining *joining = context;
  const json_t *entries = json_object_get(joining->joined->index, "tensors");
  char name[1024];
  int64_t first, end;
  const json_t *entry = NULL;
  if (read_name(part->name, name, sizeof name, &first, &end)) entry = json_object_get(entries, name);
  if (entry == NULL)
    return rt_problem(joining->problem, "%s: '%.200s' is not a part of a tensor of the index", path, part->name);
  int number = (int)json_integer_value(json_object_get(entry, "number"));
  struct stored_tensor *whole = &joining->joined->tensors[number];
  int64_t elements = rt_shape_count(whole->rank, whole->shape);
  size_t width = elements > 0 ? whole->size / (size_t)elements : 0;
  if (strcmp(part->dtype, whole->dtype) != 0 || end > elements || part->size != (size_t)(end - first) * width ||
      (size_t)first * width != joining->filled[number])
    return rt_problem(joining->problem, "%s: '%.200s' does not begin where the parts before it end", path, part->name);
  memcpy((uint8_t *)joining->joined->memory + (whole->bytes - (const uint8_t *)joining->joined->memory) +
             joining->filled[number],
         part->bytes, part->size);
  joining->filled[number] += part->size;
  return true;
}

/* Gives each tensor of the file at `path` to `take`. */
static bool take_file(const char *path, bool (*take)(void *context, const char *path, const struct stored_tensor *part),
                      void *context, struct problem *problem) {
  struct mapping mapping;
  struct safetensors file;
  if (!rt_map(&mapping, path, "give the files of all ranks that the index names", problem)) return false;
  bool read = rt_safetensors_read(&file, path, mapping.bytes, mapping.size, problem), good = read;
  for (int i = 0; good && i < file.count; i++) good = take(context, path, &file.tensors[i]);
  if (read) rt_safetensors_free(&file);
  rt_unmap(&mapping);
  return good;
}

/* The same of the files of all ranks, in their order. */
static bool take_files(const struct joined *index, const char *path,
                       bool (*take)(void *context, const char *path, const struct stored_tensor *part), void *context,
                       int *files, struct problem *problem) {
  int64_t ranks = json_integer_value(json_object_get(index->index, "ranks"));
  int stem = (int)(strlen(path) - strlen(rt_parts_ending));
  char part[4096 + 40];
  if (ranks < 1 || ranks > MOST_RANKS) return rt_problem(problem, "%s: 'ranks' is not a number of ranks", path);
  for (int64_t i = 1; i <= ranks; i++) {
    snprintf(part, sizeof part, "%.*s-%05" PRId64 "-of-%05" PRId64 ".safetensors", stem, path, i, ranks);
    if (!take_file(part, take, context, problem)) return false;
    (*files)++;
  }
  return true;
}

static bool add_files(struct joining *joining) {
  struct joined *joined = joining->joined;
  if (!take_files(joined, joining->path, add_part, joining, &joined->files, joining->problem)) return false;
  for (int i = 0; i < joined->count; i++)
    if (joining->filled[i] != joined->tensors[i].size)
      return rt_problem(joining->problem, "%s: the parts of '%.200s' end before it does", joining->path,
                        joined->tensors[i].name);
  return true;
}

/* ---- Some of each tensor ---- */

/* Of a tensor, the elements from `first` up to `end`, of which those before `next` are there. */
struct wanted {
  char name[1024];
  int64_t first, end, next;
};

struct filling {
  const struct tensor_list *list;
  struct wanted *wanted;
  struct problem *problem;
};

/* What a part has of what is wanted goes to its offset. */
static bool fill_part(void *context, const char *path, const struct stored_tensor *part) {
  struct filling *filling = context;
  char name[1024];
  int64_t first, end;
  if (!read_name(part->name, name, sizeof name, &first, &end))
    return rt_problem(filling->problem, "%s: '%.200s' is not a part of a tensor", path, part->name);
  for (int i = 0; i < filling->list->count; i++) {
    struct wanted *wanted = &filling->wanted[i];
    const struct tensor_view *view = &filling->list->items[i];
    if (strcmp(wanted->name, name) != 0 || first >= wanted->end || end <= wanted->next) continue;
    size_t width = rt_dtype_size(view->dtype);
    int64_t until = end < wanted->end ? end : wanted->end;
    if (first > wanted->next || strcmp(part->dtype, rt_dtype_name(view->dtype)) != 0 ||
        part->size != (size_t)(end - first) * width)
      return rt_problem(filling->problem, "%s: '%.200s' does not begin where the parts before it end", path,
                        part->name);
    memcpy(view->bytes + (size_t)(wanted->next - wanted->first) * width,
           part->bytes + (size_t)(wanted->next - first) * width, (size_t)(until - wanted->next) * width);
    wanted->next = until;
  }
  return true;
}

bool rt_parts_fill(const struct joined *index, const char *path, const struct tensor_list *list,
                   struct problem *problem) {
  struct filling filling = {list, calloc((size_t)list->count + 1, sizeof(struct wanted)), problem};
  int files = 0;
  bool good = filling.wanted != NULL || rt_problem(problem, "%s: no memory for the list of tensors", path);
  for (int i = 0; good && i < list->count; i++) {
    struct wanted *wanted = &filling.wanted[i];
    good = read_name(list->items[i].name, wanted->name, sizeof wanted->name, &wanted->first, &wanted->end) ||
           rt_problem(problem, "%s: the name '%.200s' is too long", path, list->items[i].name);
    wanted->next = wanted->first;
  }
  good = good && take_files(index, path, fill_part, &filling, &files, problem);
  for (int i = 0; good && i < list->count; i++)
    if (filling.wanted[i].next != filling.wanted[i].end)
      good = rt_problem(problem, "%s: there is no whole '%.200s'", path, list->items[i].name);
  free(filling.wanted);
  return good;
}

/* ---- All ---- */

static bool open_index(struct joining *joining, const char *cure) {
  struct mapping mapping;
  json_error_t error;
  if (!rt_map(&mapping, joining->path, cure, joining->problem)) return false;
  json_t *root = json_loadb((const char *)mapping.bytes, mapping.size, JSON_REJECT_DUPLICATES, &error);
  rt_unmap(&mapping);
  joining->joined->index = root;
  json_t *entries = json_object_get(root, "tensors");
  if (root == NULL)
    return rt_problem(joining->problem, "%s: byte %d: the index is not JSON: %s", joining->path, error.position,
                      error.text);
  if (!json_is_object(entries)) return rt_problem(joining->problem, "%s: the index has no 'tensors'", joining->path);
  return read_tensors(joining, entries);
}

bool rt_parts_open(struct joined *joined, const char *path, const char *cure, struct problem *problem) {
  struct joining joining = {.joined = joined, .path = path, .problem = problem};
  *joined = (struct joined){0};
  bool good = open_index(&joining, cure);
  free(joining.filled);
  if (!good) rt_parts_free(joined);
  return good;
}

bool rt_parts_join(struct joined *joined, const char *path, const char *cure, struct problem *problem) {
  struct joining joining = {.joined = joined, .path = path, .problem = problem};
  *joined = (struct joined){0};
  bool good = open_index(&joining, cure) && take_memory(&joining) && add_files(&joining);
  free(joining.filled);
  if (!good) rt_parts_free(joined);
  return good;
}

void rt_parts_free(struct joined *joined) {
  if (joined->memory != NULL) munmap(joined->memory, joined->size);
  free(joined->tensors);
  json_decref(joined->index);
  *joined = (struct joined){0};
}
