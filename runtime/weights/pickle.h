/* Pickles of a flat dict of PyTorch's tensors (the opcodes: CPython's Lib/pickletools.py, protocol 2; what they call:
 * torch/_utils.py). Nothing is called: names of functions and classes that are not on a list are errors. */
#ifndef RUNTIME_WEIGHTS_PICKLE_H
#define RUNTIME_WEIGHTS_PICKLE_H

#include "runtime/base/problem.h"

#include <stddef.h>
#include <stdint.h>

/* A tensor of the dict: elements of a storage, which is a file of its archive. Texts point into the pickle and have no
 * NUL at their ends. */
struct pickled_tensor {
  const char *name, *key; /* of the tensor; of its storage */
  size_t name_length, key_length;
  const char *dtype; /* of the storage, as safetensors spell it: "F32" */
  int rank;
  int64_t offset, count;        /* elements: of its first one, of the storage */
  int64_t shape[8], strides[8]; /* strides are of elements */
};

struct pickled {
  struct pickled_tensor *tensors;
  int count;
};

/* Reads it. An error names what is not read: an opcode, a name, what is no tensor. */
bool rt_pickle_read(struct pickled *pickled, const char *path, const uint8_t *bytes, size_t size,
                    struct problem *problem);

void rt_pickled_free(struct pickled *pickled);

#endif
