/* Channels whose elements are neighbouring columns, `inner` of each. */
#ifndef ACCEL_CPU_CHANNELS_H
#define ACCEL_CPU_CHANNELS_H

#include <stddef.h>

/* The sum of what columns of channel c have. */
static inline __attribute__((always_inline)) double accel_channel_sum(const double *columns, size_t c, size_t inner) {
  double sum = columns[c * inner];
  for (size_t j = c * inner + 1; j < (c + 1) * inner; j++) sum += columns[j];
  return sum;
}

/* Gives each column of channel c its number. */
static inline __attribute__((always_inline)) void accel_channel_set(float *columns, size_t c, size_t inner,
                                                                    float number) {
  for (size_t j = c * inner; j < (c + 1) * inner; j++) columns[j] = number;
}

#endif
