/* A matmul of cuBLASLt's as plain values. */
#ifndef TESTS_CUDA_BLAS_H
#define TESTS_CUDA_BLAS_H

#include "tests/cuda/standin/algorithms.h"

#include <cublasLt.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct description {
  cublasComputeType_t compute;
  cublasOperation_t transposed_a, transposed_b;
  cublasLtEpilogue_t epilogue;
  void *bias, *aux;
  const float *a_scale, *b_scale; /* of factors of 8 bits */
  int64_t aux_row, aux_step;
};

struct matrix {
  cudaDataType type;
  int64_t rows, columns, ld, step;
  int32_t batch;
};

/* What an algorithm was chosen for stands in it. */
struct choice {
  struct description what;
  struct matrix a, b, d;
  size_t workspace;
  uint32_t alignment; /* of their addresses */
};

struct matmul {
  struct choice of;
  float alpha, beta;
  const void *a, *b;
  void *d, *workspace;
  size_t workspace_bytes;
  struct algorithm algorithm;
};

enum {
  RELU_FLAG = 2,
  BIAS_FLAG = 4,
  DRELU_FLAG = 8,
  GELU_FLAG = 32,
  DGELU_FLAG = 64,
  SUM_D_FLAG = 16,
  AUX_FLAG = 128,
  SUM_A_FLAG = 256,
  SUM_B_FLAG = 512
};

static inline bool uses(const struct description *what, unsigned flag) {
  return ((unsigned)what->epilogue & flag) != 0;
}

/* Of relu a bit for each element is kept. */
static inline bool masks(const struct description *what) {
  return uses(what, RELU_FLAG | DRELU_FLAG);
}

static inline bool is_fp8(cudaDataType type) {
  return type == CUDA_R_8F_E4M3 || type == CUDA_R_8F_E5M2;
}

static inline size_t width(cudaDataType type) {
  return type == CUDA_R_32F ? 4 : is_fp8(type) ? 1 : 2;
}

static inline int64_t depth_of(const struct choice *of) {
  return of->what.transposed_a == CUBLAS_OP_N ? of->a.columns : of->a.rows;
}

/* Computes a struct matmul, when the stream comes to it. */
void blas_run_matmul(const void *arguments);

#endif
