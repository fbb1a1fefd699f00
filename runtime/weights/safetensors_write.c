#include "runtime/weights/safetensors.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "safetensors and this machine are little endian");

static json_t *entry_of(const struct tensor_view *tensor, size_t begin) {
  json_t *shape = json_array();
  for (int i = 0; i < tensor->rank; i++) json_array_append_new(shape, json_integer(tensor->shape[i]));
  return json_pack("{s:s, s:o, s:[I, I]}", "dtype", rt_dtype_name(tensor->dtype), "shape", shape, "data_offsets",
                   (json_int_t)begin, (json_int_t)(begin + tensor->size));
}

/* The header's text, or NULL. Without padding between tensors: the format allows none. */
static char *header_text(const struct tensor_view *tensors, int count) {
  size_t begin = 0;
  json_t *header = json_pack("{s:{s:s}}", "__metadata__", "format", "pt");
  bool whole = header != NULL;
  for (int i = 0; i < count && whole; i++) {
    whole = json_object_set_new(header, tensors[i].name, entry_of(&tensors[i], begin)) == 0;
    begin += tensors[i].size;
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

/* In pieces, so that it takes no memory for a tensor. */
static bool write_from_disk(struct writer *writer, const struct tensor_view *tensor, struct problem *problem) {
  enum { PIECE = 1 << 18 };
  char *piece = malloc(PIECE);
  bool good = piece != NULL || rt_writer_give_up(writer, "cannot be written", problem);
  for (size_t at = 0; good && at < tensor->size; at += PIECE) {
    const size_t size = tensor->size - at < PIECE ? tensor->size - at : PIECE;
    good = rt_scratch_read(tensor->scratch, tensor->bytes + at, piece, size)
               ? rt_writer_add(writer, piece, size, problem)
               : rt_writer_give_up(writer, "states could not be read from their disk", problem);
  }
  free(piece);
  return good;
}

/* What is made is made one tensor at a time, so that a model needs no more memory than for its largest one. */
static bool write_tensor(struct writer *writer, const struct tensor_view *tensor, struct problem *problem) {
  if (tensor->scratch != NULL) return write_from_disk(writer, tensor, problem);
  if (tensor->make == NULL) return rt_writer_add(writer, tensor->bytes, tensor->size, problem);
  void *made = malloc(tensor->size);
  bool good = made != NULL && tensor->make(tensor, made);
  bool written = good ? rt_writer_add(writer, made, tensor->size, problem)
                      : rt_writer_give_up(writer, "cannot be written", problem);
  free(made);
  return written;
}

static bool write_whole(const char *path, enum placing placing, const char *header, const struct tensor_view *tensors,
                        int count, struct file_sum *sum, struct progress *progress, struct problem *problem) {
  struct writer writer;
  if (!rt_writer_open(&writer, path, placing, problem)) return false;
  writer.progress = progress;
  rt_writer_stream(&writer);
  if (!write_header(&writer, header, problem)) return false;
  for (int i = 0; i < count; i++)
    if (!write_tensor(&writer, &tensors[i], problem)) return false;
  if (sum != NULL) *sum = rt_writer_sum(&writer);
  return rt_writer_commit(&writer, problem);
}

bool rt_safetensors_write(const char *path, enum placing placing, const struct tensor_view *tensors, int count,
                          struct file_sum *sum, struct progress *progress, struct problem *problem) {
  char *header = header_text(tensors, count);
  bool written = header != NULL ? write_whole(path, placing, header, tensors, count, sum, progress, problem)
                                : rt_problem(problem, "%s: no memory for the header", path);
  free(header);
  return written;
}
