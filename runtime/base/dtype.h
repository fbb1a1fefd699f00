/* Types of elements, in memory. */
#ifndef RUNTIME_BASE_DTYPE_H
#define RUNTIME_BASE_DTYPE_H

#include "include/accel/dtype.h"

#include <stddef.h>

/* Bytes of an element. */
size_t rt_dtype_size(enum accel_dtype dtype);

#endif
