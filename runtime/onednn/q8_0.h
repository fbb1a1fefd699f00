/* How a processor multiplies a row of x by rows of W, both in GGUF's blocks (include/accel/q8_0_gemm.h). */
#ifndef RUNTIME_ONEDNN_Q8_0_H
#define RUNTIME_ONEDNN_Q8_0_H

#include "include/accel/q8_0_gemm.h"

enum { RT_Q8_0_ROWS = 4 }; /* of W, at a time */

/* Rows of W, where the codes of each begin. A row that is not wanted is another once more. */
struct rt_q8_0_rows {
  int64_t blocks;
  const uint8_t *codes[RT_Q8_0_ROWS];
  const uint8_t *ahead; /* of codes that are read next; NULL: none */
};

enum rt_q8_0_form { RT_Q8_0_BEST, RT_Q8_0_PLAIN, RT_Q8_0_AVX2, RT_Q8_0_VNNI };

/* As accel_open_q8_0_gemm, for one form. Returns whether the processor has it. */
bool rt_open_q8_0_gemm_as(struct accel_q8_0_gemm *gemm, enum rt_q8_0_form form);

#endif
