/* NumPy's .npy files (numpy/lib/format.py, versions 1 to 3): an array in C order, little endian. Knows nothing of
 * files, so that it can be fuzzed. */
#ifndef RUNTIME_DATA_NPY_H
#define RUNTIME_DATA_NPY_H

#include "runtime/base/problem.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum npy_type { NPY_U1, NPY_U2, NPY_U4, NPY_I1, NPY_I2, NPY_I4, NPY_I8, NPY_F4, NPY_F8, NPY_TYPES };

struct npy {
  enum npy_type type;
  int rank;
  int64_t shape[8], count; /* of elements in all */
  const uint8_t *elements;
  int64_t bytes_before; /* of the file */
};

/* Reads the header in the `size` bytes of a file, and finds the elements after it, which must end where the file does.
 * `path` is for messages. */
bool rt_npy_find(struct npy *npy, const char *path, const uint8_t *bytes, size_t size, struct problem *problem);

/* Bytes of an element. */
int rt_npy_width(enum npy_type type);

/* Elements first … first + count - 1 as numbers. */
void rt_npy_read(enum npy_type type, const uint8_t *elements, int64_t first, int64_t count, float *out);

/* One element, exact but for integers above 2^53. */
double rt_npy_at(enum npy_type type, const uint8_t *elements, int64_t index);

#endif
