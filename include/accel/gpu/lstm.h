/* The gates of an LSTM. For C++ that nvcc or hipcc compiles. */
#ifndef ACCEL_GPU_LSTM_H
#define ACCEL_GPU_LSTM_H

#include "functions.h"

/* What opens the four gates of a unit, `units` from each other in `open`: what x gives to them, in `own`, and what the
 * state of the step before gives, which is in `open` where it is multiplied already, and else is the product of
 * state[units] and the rows of this unit in weight[4][units][units], the first of which begins there. Without a step
 * before (`follows`) it is nothing. */
template <size_t units, bool multiplied>
__device__ inline void accel_lstm_open(float *open, const float *own, const float *weight, const float *state,
                                       bool follows) {
  float sums[4];
  for (int g = 0; g < 4; g++) sums[g] = multiplied && follows ? own[g * units] + open[g * units] : own[g * units];
  for (size_t n = 0; n < units && follows && !multiplied; n++)
    for (int g = 0; g < 4; g++) sums[g] += weight[g * units * units + n] * state[n];
  for (int g = 0; g < 4; g++) open[g * units] = sums[g];
}

#endif
