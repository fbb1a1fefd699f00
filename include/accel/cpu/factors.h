/* Gradients that ranks exchange as factors of matrices. */
#ifndef ACCEL_CPU_FACTORS_H
#define ACCEL_CPU_FACTORS_H

#include "functions.h"

#include "../factors.h"

enum {
  ACCEL_FACTOR_RANK = 256,   /* the most columns of a factor */
  ACCEL_FACTOR_COLUMNS = 64, /* columns of a matrix at a time */
};

/* The columns of a factor [rows][rank] become orthonormal, by Gram's and Schmidt's way; one of zeros stays one.
 * epsilon: added to a column's length. */
static inline void accel_orthogonalize(float *m, size_t rows, size_t rank, float epsilon) {
  for (size_t k = 0; k < rank; k++) {
    double squares = 0.0;
    for (size_t i = 0; i < rows; i++) squares += (double)m[i * rank + k] * m[i * rank + k];
    const float length = (float)sqrt(squares) + epsilon;
    const float scale = length > 0.0f ? 1.0f / length : 0.0f;
    for (size_t i = 0; i < rows; i++) m[i * rank + k] *= scale;
    for (size_t l = k + 1; l < rank; l++) {
      double along = 0.0;
      for (size_t i = 0; i < rows; i++) along += (double)m[i * rank + k] * m[i * rank + l];
      for (size_t i = 0; i < rows; i++) m[i * rank + l] -= (float)along * m[i * rank + k];
    }
  }
}

/* A row of left = m right: left[rank] from m[columns] and right[columns][rank]. */
static inline void accel_multiply_row(float *left, const float *m, const float *right, size_t columns, size_t rank) {
  float sums[ACCEL_FACTOR_RANK];
  for (size_t k = 0; k < rank; k++) sums[k] = 0.0f;
  for (size_t j = 0; j < columns; j++)
    for (size_t k = 0; k < rank; k++) sums[k] += m[j] * right[j * rank + k];
  for (size_t k = 0; k < rank; k++) left[k] = sums[k];
}

/* `width` rows of right = transposed m left: right[width][rank] from as many columns of m[rows][columns] and
 * left[rows][rank]. */
static inline void accel_multiply_columns(float *right, const float *m, const float *left, size_t rows, size_t columns,
                                          size_t width, size_t rank) {
  float sums[ACCEL_FACTOR_COLUMNS * ACCEL_FACTOR_RANK];
  for (size_t j = 0; j < width * rank; j++) sums[j] = 0.0f;
  for (size_t i = 0; i < rows; i++)
    for (size_t j = 0; j < width; j++)
      for (size_t k = 0; k < rank; k++) sums[j * rank + k] += m[i * columns + j] * left[i * rank + k];
  for (size_t j = 0; j < width * rank; j++) right[j] = sums[j];
}

/* The same of all columns from `first` on, at most ACCEL_FACTOR_COLUMNS of them. */
static inline void accel_multiply_block(float *right, const float *m, const float *left, size_t rows, size_t columns,
                                        size_t first, size_t rank) {
  if (columns - first < ACCEL_FACTOR_COLUMNS)
    accel_multiply_columns(right + first * rank, m + first, left, rows, columns, columns - first, rank);
  else
    accel_multiply_columns(right + first * rank, m + first, left, rows, columns, ACCEL_FACTOR_COLUMNS, rank);
}

#endif
