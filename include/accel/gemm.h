/* Products of matrices by oneDNN's primitives, which are made for a shape: of 16 bits by the processor's own
 * instructions where oneDNN has them for it, else in float32 on blocks that are widened first; of floats, with type and
 * result ACCEL_F32, as oneDNN can. An emitted program states each GEMM's shape once, opens all of them at its start,
 * and multiplies without allocating (but for what oneDNN's own calls take).
 *
 * accel_multiply does not report failures itself: accel_onednn_status reports what went wrong in a step. */
#ifndef ACCEL_GEMM_H
#define ACCEL_GEMM_H

#include <stdbool.h>
#include <stdint.h>

/* Types of factors and results. The last three are of codes of 8 bits (accel/fp8.h), and on GPUs alone: of two factors
 * in E4M3, or of one in E5M2, the first or the second. */
enum accel_element { ACCEL_F32, ACCEL_BF16, ACCEL_F16, ACCEL_E4M3, ACCEL_E5M2_E4M3, ACCEL_E4M3_E5M2 };

/* y[b][rows][columns] (+)= a[b][rows][depth] b[b][depth][columns] for all b of the batch. Steps are in elements. */
struct accel_gemm {
  enum accel_element type, result; /* of a and b; of y */
  bool accumulate;
  bool in_blocks; /* emulated in blocks of fixed sizes, each by one thread: the same bits for any number of threads */
  bool in_parts;  /* each thread makes a part of y, where oneDNN can; of 16 bits all through, rows, where they divide */
  int64_t rows, columns, depth;
  int64_t y_row;           /* from one row of y to the next; its columns follow each other */
  int64_t a_row, a_column; /* one of them is 1 */
  int64_t b_row, b_column; /* one of them is 1 */
  int batch_rank;          /* dimensions of the batch, 0 to 4 */
  int64_t batch[4];        /* their extents */
  int64_t y_step[4], a_step[4], b_step[4];
  int64_t weights;                   /* above 0: b is one of so many weights, which stay packed */
  struct accel_primitive *primitive; /* the runtime's own: NULL where GEMMs are emulated */
  struct accel_packed *packed;       /* its own, too: NULL where no weights are packed */
};

/* Makes a GEMM ready. Ends the process with a message when oneDNN fails. Returns whether it runs as it is meant to:
 * on instructions for 16 bits, unless in_blocks; false: it is emulated. Of floats: true. */
bool accel_open_gemm(struct accel_gemm *gemm);

/* y = a b, or y += a b, of one of them. */
void accel_multiply(const struct accel_gemm *gemm, void *y, const void *a, const void *b);

/* Storage, aligned to 64 bytes and owned by the program, for the packed weights of the GEMMs that are opened from then
 * on. A GEMM whose weights do not fit there multiplies by them as they are. */
void accel_keep_packed(void *storage, int64_t bytes);

/* Weights have changed: each is packed again by the first accel_multiply that meets it. */
void accel_forget_packed(void);

/* Reports something on standard error that a person should know once. */
void accel_note(const char *what);

/* 0, or what oneDNN said in some accel_multiply so far. */
int accel_onednn_status(void);

#endif
