/* Numbers for people. */
#ifndef RUNTIME_BASE_DIGITS_H
#define RUNTIME_BASE_DIGITS_H

#include <stddef.h>
#include <stdint.h>

/* "55,310" */
void rt_digits(char *out, size_t size, int64_t number);

/* "27 s", "4 min", "3.2 h", "2.1 d" */
void rt_duration(char *out, size_t size, double seconds);

/* The value for printf. What is not a number has no sign then: which one it had differs among processors. */
double rt_unsigned_nan(double value);

#endif
