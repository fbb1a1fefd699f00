/* How oneDNN sees a GEMM, for the files that make its primitives. */
#ifndef RUNTIME_ONEDNN_GEMM_H
#define RUNTIME_ONEDNN_GEMM_H

#include "include/accel/gemm.h"
#include "runtime/onednn/onednn.h"

/* By enum accel_element. */
extern const dnnl_data_type_t rt_gemm_types[];

/* a, b and y: the batch, then rows and columns. */
dnnl_status_t rt_describe_gemm(const struct accel_gemm *p, rt_description matrices[3]);

/* The best way that oneDNN has for the GEMM of these matrices; NULL when that is only its portable one. */
dnnl_primitive_desc_t rt_choose_gemm(const struct accel_gemm *p, const rt_description matrices[3],
                                     dnnl_scratchpad_mode_t scratchpad);

/* y[rows][columns] = beta y + a b of bfloat16 by oneDNN's own gemm, the arguments as dnnl_sgemm's; whether this oneDNN
 * has it for this processor, which is to be asked first. */
dnnl_status_t rt_gemm_bfloat16(char transa, char transb, int64_t rows, int64_t columns, int64_t depth,
                               const uint16_t *a, int64_t a_step, const uint16_t *b, int64_t b_step, float beta,
                               float *y, int64_t y_step);
bool rt_has_gemm_bfloat16(void);

#endif
