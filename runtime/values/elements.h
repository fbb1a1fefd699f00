/* Elements of tensors, one at a time, whatever their type. */
#ifndef RUNTIME_VALUES_ELEMENTS_H
#define RUNTIME_VALUES_ELEMENTS_H

#include "include/accel/dtype.h"

#include <stdbool.h>
#include <stdint.h>

bool rt_is_floating(enum accel_dtype dtype);

/* Element `index` as a number; an integer beyond 2^53 is rounded. */
double rt_real_at(enum accel_dtype dtype, const void *data, int64_t index);

/* The same of a type that is not floating, exactly. */
int64_t rt_integer_at(enum accel_dtype dtype, const void *data, int64_t index);

/* Sets it, rounded to the nearest of a floating type. */
void rt_set_real(enum accel_dtype dtype, void *data, int64_t index, double value);

/* Sets it, cut to the bits of an integer type; of booleans, whether it is not 0. */
void rt_set_integer(enum accel_dtype dtype, void *data, int64_t index, int64_t value);

/* Copies `count` elements from one type to another. */
void rt_convert(enum accel_dtype to, void *out, enum accel_dtype from, const void *in, int64_t count);

/* The type that holds both, as PyTorch's torch.promote_types has it: integers give way to floating types, float16 and
 * bfloat16 together are float32, uint8 with a signed type is signed and wider. */
enum accel_dtype rt_promote(enum accel_dtype a, enum accel_dtype b);

#endif
