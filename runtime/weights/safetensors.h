/* The safetensors format (https://github.com/huggingface/safetensors): 8 bytes with the header's length, a JSON header,
 * the tensors' bytes. Knows nothing of models and, for reading, nothing of files, so that it can be fuzzed. */
#ifndef RUNTIME_WEIGHTS_SAFETENSORS_H
#define RUNTIME_WEIGHTS_SAFETENSORS_H

#include "runtime/base/problem.h"
#include "runtime/files/files.h"
#include "runtime/weights/tensors.h"

#include <stddef.h>
#include <stdint.h>

/* One tensor of a file. */
struct stored_tensor {
  const char *name;
  char dtype[12]; /* as the file spells it: "F32" */
  int rank;
  int64_t shape[8];
  const uint8_t *bytes; /* perhaps not aligned; NULL: they are in `file`, which is not mapped (window.h) */
  size_t size, at;      /* of safetensors, the place in its file */
  int file;
};

/* Memory that belongs to a file. */
struct owned_memory {
  struct owned_memory *next;
  _Alignas(16) uint8_t bytes[];
};

/* A file's tensors, of safetensors in the order of their bytes. */
struct safetensors {
  struct stored_tensor *tensors;
  int count;
  void *header;                /* the JSON that holds the names */
  struct owned_memory *memory; /* names and copies of what is no file of safetensors (torch_file.h) */
};

/* Bytes of a value of a type as files spell it; 0: it is not known. */
size_t rt_stored_size(const char *dtype);

/* The bytes of a file of `size` bytes up to the end of its header, of which the first 8 are in `bytes`, or fewer where
 * it has fewer; 0: it cannot have one. */
size_t rt_safetensors_header(const uint8_t *bytes, size_t size);

/* Reads the header of the file in `bytes` and proves that every tensor is inside, where its shape says, without
 * overlaps and without holes. The tensors point into `bytes`, of which nothing after the header is read. */
bool rt_safetensors_read(struct safetensors *file, const char *path, const uint8_t *bytes, size_t size,
                         struct problem *problem);

void rt_safetensors_free(struct safetensors *file);

/* Writes the file at `path`; its size and sum in *sum unless that is NULL. `progress` shows the bytes; NULL: nothing
 * does. */
bool rt_safetensors_write(const char *path, enum placing placing, const struct tensor_view *tensors, int count,
                          struct file_sum *sum, struct progress *progress, struct problem *problem);

/* "[2, 3]", for messages. */
const char *rt_shape_text(char *out, size_t size, int rank, const int64_t *shape);

/* The number of values of a shape. */
int64_t rt_shape_count(int rank, const int64_t *shape);

#endif
