#include "safetensors.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "safetensors and this machine are little endian");

static size_t tensor_bytes(const struct accel_tensor *tensor) {
  return (size_t)rt_shape_count(tensor->rank, tensor->shape) * sizeof(float);
}

static int by_offset(const void *a, const void *b) {
  const struct accel_tensor *left = *(const struct accel_tensor *const *)a,
                            *right = *(const struct accel_tensor *const *)b;
  if (left->offset != right->offset) return left->offset < right->offset ? -1 : 1;
  return strcmp(left->name, right->name); /* empty tensors may share an offset */
}

static json_t *entry_of(const struct accel_tensor *tensor, size_t begin) {
  json_t *shape = json_array();
  for (int i = 0; i < tensor->rank; i++) json_array_append_new(shape, json_integer(tensor->shape[i]));
  return json_pack("{s:s, s:o, s:[I, I]}", "dtype", "F32", "shape", shape, "data_offsets", (json_int_t)begin,
                   (json_int_t)(begin + tensor_bytes(tensor)));
}

/* The header's text, or NULL. Without padding between tensors: the format allows none. */
static char *header_text(const struct accel_tensor *const *ordered, int count) {
  size_t begin = 0;
  json_t *header = json_pack("{s:{s:s}}", "__metadata__", "format", "pt");
  bool whole = header != NULL;
  for (int i = 0; i < count && whole; i++) {
    whole = json_object_set_new(header, ordered[i]->name, entry_of(ordered[i], begin)) == 0;
    begin += tensor_bytes(ordered[i]);
  }
  char *text = whole ? json_dumps(header, JSON_COMPACT) : NULL;
  json_decref(header);
  return text;
}

/* The length, the text, and spaces up to a multiple of 8, so that the data is aligned in the file. */
static bool write_header(struct writer *writer, const char *text, struct problem *problem) {
  uint64_t length = strlen(text), padded = (length + 7) / 8 * 8;
  return rt_writer_add(writer, &padded, sizeof padded, problem) && rt_writer_add(writer, text, length, problem) &&
         rt_writer_add(writer, "        ", padded - length, problem);
}

static bool write_file(const char *path, const char *header, const struct accel_tensor *const *ordered, int count,
                       const char *base, struct problem *problem) {
  struct writer writer;
  if (!rt_writer_open(&writer, path, problem)) return false;
  if (!write_header(&writer, header, problem)) return false;
  for (int i = 0; i < count; i++)
    if (!rt_writer_add(&writer, base + ordered[i]->offset, tensor_bytes(ordered[i]), problem)) return false;
  return rt_writer_commit(&writer, problem);
}

bool rt_safetensors_write(const char *path, const struct accel_tensor *tensors, int count, const void *base,
                          struct problem *problem) {
  const struct accel_tensor **ordered = calloc((size_t)count + 1, sizeof *ordered);
  for (int i = 0; i < count && ordered != NULL; i++) ordered[i] = &tensors[i];
  if (ordered != NULL) qsort(ordered, (size_t)count, sizeof *ordered, by_offset);
  char *header = ordered != NULL ? header_text(ordered, count) : NULL;
  bool written = header != NULL ? write_file(path, header, ordered, count, base, problem)
                                : rt_problem(problem, "%s: no memory for the header", path);
  free(header);
  free(ordered);
  return written;
}
