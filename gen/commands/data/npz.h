/* Archives of arrays (.npz) as numpy.savez writes them: not compressed, so that a trainer maps them. */
#ifndef ACCEL_COMMANDS_DATA_NPZ_H
#define ACCEL_COMMANDS_DATA_NPZ_H

#include <stddef.h>
#include <stdint.h>

#include "runtime/base/problem.h"

/* An array of `rows` rows, little endian. */
struct npz_array {
  const char *name;      /* in the archive: "labels" */
  const char *dtype;     /* NumPy's: "<i4", "|u1", "<f4" */
  size_t width;          /* bytes of an element of that type */
  int64_t rows, columns; /* columns: elements of a row; 0: the array has one dimension */
  void (*fill)(const void *context, int64_t row, void *out); /* writes the elements of a row to `out` */
  const void *context;
  int64_t group; /* rows that are one along the first dimension, [rows / group][group][columns]; 0: each is its own */
};

/* Writes an archive of `count` arrays. Each row is asked for twice: once for the checksum, once to be written. False
 * with a problem, and no file. */
bool npz_write(const char *path, const struct npz_array *arrays, int count, struct problem *problem);

#endif
