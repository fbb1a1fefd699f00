/* Gradients that ranks exchange as factors of matrices: what is the same text on every device. The header of a device
 * that includes this says in ACCEL_FUNCTION what a function begins with. */
#ifndef ACCEL_FACTORS_H
#define ACCEL_FACTORS_H

#include <stddef.h>

/* A matrix [rows][columns] whose first `count` elements are gradients, and its factors [rows][rank] and
 * [columns][rank]. */
struct accel_factored {
  size_t first, at;   /* elements: where it begins among the gradients, and among all such matrices */
  size_t left, right; /* where its factors begin among those of each side */
  size_t count, rows, columns, rank;
};

/* An element of the product of two factors: the sum over a row of each. */
ACCEL_FUNCTION float accel_restored(const float *left, const float *right, size_t rank) {
  float sum = 0.0f;
  for (size_t k = 0; k < rank; k++) sum += left[k] * right[k];
  return sum;
}

#endif
