/* Products of matrices by cuBLASLt, with what follows them fused in. An emitted program states each GEMM's shape
 * once, opens all of them at its start, which chooses an algorithm, and multiplies without allocating. */
#ifndef ACCEL_GPU_GEMM_H
#define ACCEL_GPU_GEMM_H

#include "../gemm.h"
#include "device.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What is done with a GEMM before it is written. bias is a vector of y's type; aux of gelu a matrix of the type and
 * the steps of y, of relu a bit for each position of such a matrix, whose rows are multiples of 128 bits and which the
 * library alone reads.
 *
 *   BIAS            y = a b + bias[column]
 *   GELU            aux = a b, y = gelu(aux): the form with tanh, gelu_tanh
 *   BIAS_GELU       aux = a b + bias[column], y = gelu(aux)
 *   RELU            aux = a b > 0, y = max(a b, 0)
 *   BIAS_RELU       the same of a b + bias[column]
 *   DGELU           y = gelu'(aux) · (a b): aux is read
 *   DGELU_SUM       the same, and bias[column] = Σ over rows of y
 *   DRELU           y = a b where aux is set, else 0
 *   DRELU_SUM       the same, and bias[column] = Σ over rows of y
 *   SUM_A           y = a b, and bias[row] = Σ over depth of a[row][depth]: with a = the gradient of a linear's result,
 *                   transposed, the gradient of its bias
 *   SUM_B           y = a b, and bias[column] = Σ over depth of b[depth][column]
 *   SCALED          y = bias[0] aux[0] (a b): of codes of 8 bits, each with a float on the device by which its factor
 *                   is multiplied; a_column and b_row are 1
 *
 * Sums are written, also where the GEMM accumulates. */
enum accel_epilogue {
  ACCEL_PLAIN,
  ACCEL_BIAS,
  ACCEL_GELU,
  ACCEL_BIAS_GELU,
  ACCEL_RELU,
  ACCEL_BIAS_RELU,
  ACCEL_DGELU,
  ACCEL_DGELU_SUM,
  ACCEL_DRELU,
  ACCEL_DRELU_SUM,
  ACCEL_SUM_A,
  ACCEL_SUM_B,
  ACCEL_SCALED
};

/* y[n][rows][columns] (+)= a[n][rows][depth] b[n][depth][columns] for all n of the batch, added up in float32. Steps
 * are in elements. */
struct accel_gpu_gemm {
  const char *name;                /* for messages: "attn.c_attn" */
  const char *algorithm_name;      /* of those that ACCEL_MEASURE has timed; NULL: the first of the heuristic's */
  enum accel_element type, result; /* of a and b; of y, bias and gelu's aux */
  bool tf32;                       /* float32 operands are rounded to 10 bits of mantissa */
  bool accumulate;                 /* only with PLAIN, SUM_A and SUM_B */
  enum accel_epilogue epilogue;
  int64_t rows, columns, depth;
  int64_t y_row;           /* from one row of y to the next; its columns follow each other */
  int64_t a_row, a_column; /* one of them is 1 */
  int64_t b_row, b_column; /* one of them is 1 */
  int64_t alignment;       /* bytes that the addresses of y, a and b are multiples of; 0: 16 */
  int64_t batch;           /* 0: 1 */
  int64_t y_step, a_step, b_step;
  struct accel_gpu_algorithm *algorithm; /* the runtime's own */
};

/* A GEMM of a kernel in one line: the types of a and b and of y, and the epilogue, without ACCEL_; then numbers in the
 * order of the members, and members that are not zero. The kernel's own name is the GEMM's. */
#define ACCEL_GPU_GEMM(kernel, of, to, with, m, n, k, y_next, a_next, a_column_next, b_next, ...)                      \
  static struct accel_gpu_gemm kernel##_gemm = {.name = #kernel,                                                       \
                                                .type = ACCEL_##of,                                                    \
                                                .result = ACCEL_##to,                                                  \
                                                .epilogue = ACCEL_##with,                                              \
                                                .rows = m,                                                             \
                                                .columns = n,                                                          \
                                                .depth = k,                                                            \
                                                .y_row = y_next,                                                       \
                                                .a_row = a_next,                                                       \
                                                .a_column = a_column_next,                                             \
                                                .b_row = b_next,                                                       \
                                                .b_column = __VA_ARGS__}

/* Makes a GEMM ready: takes the algorithm that it names, where cuBLASLt has it on this GPU; else, with a warning,
 * and where it names none the first algorithm of the library's heuristic that fits the workspace and, where the plan is
 * deterministic, writes each element once. GEMMs that are alike share it. Where the library has none with an
 * epilogue's sums, these are a second GEMM, with ones. Ends the process with a message that names the GEMM when
 * there is none, or where a GPU does not multiply 8 bits.
 *
 * With ACCEL_MEASURE=FILE in the environment nothing is recorded into graphs, each GEMM times the algorithms that
 * the heuristic offers where it first runs, by events and with its operands as they are, and FILE gets what was
 * measured: `accel-gen tune` reads it. Results are those of a run without it. */
void accel_gpu_open_gemm(struct accel_gpu_gemm *gemm);

/* Puts it into `stream`, the compute stream or one that never runs concurrently with it, as they share the workspace.
 * bias and aux: NULL where the epilogue has none. */
void accel_gpu_multiply(const struct accel_gpu_gemm *gemm, accel_stream stream, void *y, const void *a, const void *b,
                        void *bias, void *aux);

#ifdef __cplusplus
}
#endif

#endif
