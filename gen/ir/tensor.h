/* Element types and shapes: what every stage of the generator says of a tensor. */
#ifndef ACCEL_IR_TENSOR_H
#define ACCEL_IR_TENSOR_H

#include <stdbool.h>
#include <stdint.h>

#include "gen/base/arena.h"

enum { MAX_RANK = 8 };

enum dtype {
  DTYPE_FLOAT32,
  DTYPE_INT32,
  DTYPE_BFLOAT16,
  DTYPE_FLOAT16,
  DTYPE_UINT8,
  DTYPE_INT64,
  DTYPE_FLOAT64,
  DTYPE_INT8
};

/* Row-major extents; rank 0 is a scalar. Every extent is at least 1. */
struct shape {
  int rank;
  int64_t dim[MAX_RANK];
};

/* "float32", "int32", "bfloat16", "float16", "uint8", "int64", "float64", "int8". */
const char *dtype_name(enum dtype dtype);

/* The same as a part of a C name: "f32", "i32", "bf16", "f16", "u8", "i64", "f64". */
const char *dtype_short_name(enum dtype dtype);

/* A type that models compute in. float64 is none: it is for sums alone. */
bool dtype_is_float(enum dtype dtype);

/* A floating-point type of 16 bits. */
bool dtype_is_bits16(enum dtype dtype);

/* The floating-point type that holds both: PyTorch's type promotion. Of two different 16-bit types: float32. */
enum dtype dtype_widest(enum dtype a, enum dtype b);

/* Bytes of one element. */
int64_t dtype_size(enum dtype dtype);

/* Makers: shape_of(3, b, t, c). */
struct shape shape_of(int rank, ...);

/* Elements of a shape; 1 for a scalar. */
int64_t shape_count(struct shape shape);

bool shape_equal(struct shape a, struct shape b);

/* The product of the dimensions from `first` up to (not including) `last`; INT64_MAX when it does not fit. */
int64_t shape_product(struct shape shape, int first, int last);

/* `axis`, counted from the end when negative; -1 when out of range. */
int shape_axis(struct shape shape, int64_t axis);

/* NumPy's broadcasting rule; false when a and b do not broadcast. */
bool shape_broadcast(struct shape a, struct shape b, struct shape *result);

/* "[12][64][128]"; "[]" for a scalar. */
const char *shape_text(struct arena *arena, struct shape shape);

/* Strides in elements of a dense row-major tensor. */
void shape_dense_strides(struct shape shape, int64_t strides[MAX_RANK]);

#endif
