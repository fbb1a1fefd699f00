/* Conversions of the 16-bit floating formats; each value of theirs is a float32. */
#ifndef RUNTIME_HALF_H
#define RUNTIME_HALF_H

#include <stdint.h>

/* IEEE 754 binary16. */
float rt_from_float16(uint16_t bits);

/* bfloat16: the upper half of a float32. */
float rt_from_bfloat16(uint16_t bits);

#endif
