#include <math.h>

#include "gen/ops/support/support.h"

struct op_moments op_moments(const double *x, int64_t count, double eps) {
  double sum = 0, squares = 0;
  for (int64_t i = 0; i < count; i++) sum += x[i];
  double mean = sum / (double)count;
  for (int64_t i = 0; i < count; i++) squares += (x[i] - mean) * (x[i] - mean);
  return (struct op_moments){mean, 1 / sqrt(squares / (double)count + eps)};
}
