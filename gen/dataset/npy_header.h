/* The header of NumPy's .npy files, version 1. */
#ifndef ACCEL_DATASET_NPY_HEADER_H
#define ACCEL_DATASET_NPY_HEADER_H

#include <stdint.h>

/* Its bytes, whatever the shape is, so that it can be written before the number of rows is known. */
enum { NPY_HEADER = 128 };

/* Writes the header of an array of `rank` (4 at most) dimensions in C order; `type` is NumPy's word, such as "<i4". */
void npy_header(char out[NPY_HEADER], const char *type, const int64_t *shape, int rank);

#endif
