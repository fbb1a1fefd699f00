/* Reading: nothing in the file is believed. Every figure is checked against what it must fit before it is used. */
#include "runtime/weights/safetensors.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LENGTH_BYTES = 8, MOST_HEADER_BYTES = 100000000 }; /* the limit of the reference implementation */

/* What follows a header: so many bytes from a byte of the file on. */
struct data {
  const uint8_t *file;
  size_t at, size;
};

static const char cure[] = "the file is damaged or not safetensors: copy, download or save it again";

static bool broken(struct problem *problem) {
  return rt_help(problem, "%s", cure);
}

static uint64_t read_u64(const uint8_t *at) {
  uint64_t value = 0;
  for (int i = 7; i >= 0; i--) value = value << 8 | at[i];
  return value;
}

size_t rt_stored_size(const char *dtype) {
  static const struct {
    const char *name;
    size_t size;
  } known[] = {{"F64", 8},  {"F32", 4}, {"F16", 2},     {"BF16", 2},    {"I64", 8},    {"I32", 4},
               {"I16", 2},  {"I8", 1},  {"U64", 8},     {"U32", 4},     {"U16", 2},    {"U8", 1},
               {"BOOL", 1}, {"C64", 8}, {"F8_E5M2", 1}, {"F8_E4M3", 1}, {"F8_E8M0", 1}};
  for (size_t i = 0; i < sizeof known / sizeof *known; i++)
    if (strcmp(known[i].name, dtype) == 0) return known[i].size;
  return 0;
}

const char *rt_shape_text(char *out, size_t size, int rank, const int64_t *shape) {
  size_t at = (size_t)snprintf(out, size, "[");
  for (int i = 0; i < rank && at < size; i++)
    at += (size_t)snprintf(out + at, size - at, "%s%" PRId64, i == 0 ? "" : ", ", shape[i]);
  if (at < size) snprintf(out + at, size - at, "]");
  return out;
}

int64_t rt_shape_count(int rank, const int64_t *shape) {
  int64_t count = 1;
  for (int i = 0; i < rank; i++) count *= shape[i];
  return count;
}

static bool parse_dtype(struct stored_tensor *tensor, const json_t *entry, const char *path, struct problem *problem) {
  const char *dtype = json_string_value(json_object_get(entry, "dtype"));
  if (dtype == NULL || rt_stored_size(dtype) == 0) {
    rt_problem(problem, "%s: tensor '%.200s': dtype '%.20s' is not known", path, tensor->name,
               dtype != NULL ? dtype : "(missing)");
    return broken(problem);
  }
  snprintf(tensor->dtype, sizeof tensor->dtype, "%s", dtype);
  return true;
}

/* The bytes that the shape asks for in *needed. */
static bool parse_shape(struct stored_tensor *tensor, const json_t *entry, uint64_t *needed, const char *path,
                        struct problem *problem) {
  const json_t *shape = json_object_get(entry, "shape");
  size_t rank = json_array_size(shape), most = sizeof tensor->shape / sizeof *tensor->shape;
  if (!json_is_array(shape) || rank > most) {
    rt_problem(problem, "%s: tensor '%.200s': the shape must be a list of at most %zu numbers", path, tensor->name,
               most);
    return broken(problem);
  }
  tensor->rank = (int)rank;
  *needed = rt_stored_size(tensor->dtype);
  for (size_t i = 0; i < rank; i++) {
    const json_t *extent = json_array_get(shape, i);
    tensor->shape[i] = json_integer_value(extent);
    if (!json_is_integer(extent) || tensor->shape[i] < 0 ||
        (tensor->shape[i] != 0 && *needed > (uint64_t)INT64_MAX / (uint64_t)tensor->shape[i])) {
      rt_problem(problem, "%s: tensor '%.200s': dimension %zu of the shape is impossible", path, tensor->name, i);
      return broken(problem);
    }
    *needed *= (uint64_t)tensor->shape[i];
  }
  return true;
}

static bool parse_range(struct stored_tensor *tensor, const json_t *entry, const struct data *data, uint64_t needed,
                        const char *path, struct problem *problem) {
  const json_t *offsets = json_object_get(entry, "data_offsets");
  const json_t *first = json_array_get(offsets, 0), *second = json_array_get(offsets, 1);
  if (json_array_size(offsets) != 2 || !json_is_integer(first) || !json_is_integer(second)) {
    rt_problem(problem, "%s: tensor '%.200s': data_offsets must be two whole numbers", path, tensor->name);
    return broken(problem);
  }
  int64_t begin = json_integer_value(first), end = json_integer_value(second);
  if (begin < 0 || end < begin || (uint64_t)end > data->size) {
    rt_problem(problem, "%s: tensor '%.200s': bytes %" PRId64 " to %" PRId64 " are outside the file's data of %zu",
               path, tensor->name, begin, end, data->size);
    return broken(problem);
  }
  if ((uint64_t)(end - begin) != needed) {
    rt_problem(problem, "%s: tensor '%.200s': %" PRId64 " bytes, but its shape and dtype take %" PRIu64, path,
               tensor->name, end - begin, needed);
    return broken(problem);
  }
  tensor->at = data->at + (size_t)begin;
  tensor->bytes = data->file + tensor->at;
  tensor->size = (size_t)needed;
  return true;
}

static bool parse_tensor(struct stored_tensor *tensor, const char *name, const json_t *entry, const struct data *data,
                         const char *path, struct problem *problem) {
  uint64_t needed = 0;
  *tensor = (struct stored_tensor){.name = name};
  return parse_dtype(tensor, entry, path, problem) && parse_shape(tensor, entry, &needed, path, problem) &&
         parse_range(tensor, entry, data, needed, path, problem);
}

static bool is_metadata(const char *name) {
  return strcmp(name, "__metadata__") == 0;
}

static bool parse_tensors(struct safetensors *file, const struct data *data, const char *path,
                          struct problem *problem) {
  json_t *header = file->header, *entry;
  const char *name;
  file->tensors = calloc(json_object_size(header) + 1, sizeof *file->tensors);
  if (file->tensors == NULL) return rt_problem(problem, "%s: no memory for the list of tensors", path);
  json_object_foreach(header, name, entry) {
    if (is_metadata(name)) continue;
    if (!parse_tensor(&file->tensors[file->count], name, entry, data, path, problem)) return false;
    file->count++;
  }
  return true;
}

static int by_position(const void *a, const void *b) {
  const struct stored_tensor *left = a, *right = b;
  if (left->at != right->at) return left->at < right->at ? -1 : 1;
  if (left->size != right->size) return left->size < right->size ? -1 : 1;
  return strcmp(left->name, right->name);
}

/* The format wants every byte to belong to exactly one tensor: no file can hide or share bytes. */
static bool check_cover(const struct safetensors *file, const struct data *data, const char *path,
                        struct problem *problem) {
  size_t at = data->at;
  for (int i = 0; i < file->count; i++) {
    const struct stored_tensor *tensor = &file->tensors[i];
    if (tensor->at != at) {
      rt_problem(problem, "%s: tensor '%.200s': begins at byte %zu of the data, where %zu was expected (%s)", path,
                 tensor->name, tensor->at - data->at, at - data->at, tensor->at < at ? "an overlap" : "a hole");
      return broken(problem);
    }
    at += tensor->size;
  }
  if (at - data->at == data->size) return true;
  rt_problem(problem, "%s: %zu bytes of data, but its tensors take %zu", path, data->size, at - data->at);
  return broken(problem);
}

static bool parse_header(struct safetensors *file, const char *path, const uint8_t *text, size_t size,
                         struct problem *problem) {
  json_error_t error;
  file->header = json_loadb((const char *)text, size, JSON_REJECT_DUPLICATES, &error);
  if (file->header == NULL) {
    rt_problem(problem, "%s: byte %d: the header is not JSON: %s", path, error.position + LENGTH_BYTES, error.text);
    return broken(problem);
  }
  if (json_is_object((json_t *)file->header)) return true;
  rt_problem(problem, "%s: byte %d: the header is not a JSON object", path, LENGTH_BYTES);
  return broken(problem);
}

static bool check_length(const char *path, const uint8_t *bytes, size_t size, uint64_t *length,
                         struct problem *problem) {
  if (size < LENGTH_BYTES) {
    rt_problem(problem, "%s: %zu bytes are too few for safetensors", path, size);
    return broken(problem);
  }
  *length = read_u64(bytes);
  if (*length <= size - LENGTH_BYTES && *length <= MOST_HEADER_BYTES) return true;
  rt_problem(problem, "%s: byte 0: a header of %" PRIu64 " bytes in a file of %zu (at most %d are read)", path, *length,
             size, MOST_HEADER_BYTES);
  return broken(problem);
}

size_t rt_safetensors_header(const uint8_t *bytes, size_t size) {
  struct problem ignored;
  uint64_t length = 0;
  return check_length("", bytes, size, &length, &ignored) ? LENGTH_BYTES + (size_t)length : 0;
}

bool rt_safetensors_read(struct safetensors *file, const char *path, const uint8_t *bytes, size_t size,
                         struct problem *problem) {
  uint64_t length = 0;
  *file = (struct safetensors){0};
  if (!check_length(path, bytes, size, &length, problem)) return false;
  const size_t at = LENGTH_BYTES + (size_t)length;
  const struct data data = {bytes, at, size - at};
  bool parsed = parse_header(file, path, bytes + LENGTH_BYTES, (size_t)length, problem) &&
                parse_tensors(file, &data, path, problem);
  if (parsed) {
    qsort(file->tensors, (size_t)file->count, sizeof *file->tensors, by_position);
    parsed = check_cover(file, &data, path, problem);
  }
  if (!parsed) rt_safetensors_free(file);
  return parsed;
}

void rt_safetensors_free(struct safetensors *file) {
  json_decref(file->header);
  free(file->tensors);
  for (struct owned_memory *memory = file->memory, *next; memory != NULL; memory = next) {
    next = memory->next;
    free(memory);
  }
  *file = (struct safetensors){0};
}
