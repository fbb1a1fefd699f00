/* Weights in the layout that oneDNN's GEMMs of processors with AVX-512 take, faster than by its own reorder. */
#ifndef RUNTIME_ONEDNN_BLOCKS_H
#define RUNTIME_ONEDNN_BLOCKS_H

#include "include/accel/gemm.h"
#include "runtime/onednn/onednn.h"

/* Whether `working` is that layout of the weights of a GEMM, which rt_pack_blocks can write. */
bool rt_has_blocks(const struct accel_gemm *gemm, rt_described working);

/* Packs the GEMM's weights: [columns / 64][depth / 16][16][64] words of 32 bits, a float or two elements of 16 bits
 * that follow each other along the depth; zeros after the last. */
void rt_pack_blocks(const struct accel_gemm *gemm, void *to, const void *from);

#endif
