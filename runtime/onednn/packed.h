/* GEMMs whose rows are shared out, each thread's made by a primitive of its own; by weights in the primitive's
 * layout, each of which is packed once, where it is first met, and again when weights have changed, or by matrices as
 * they are. */
#ifndef RUNTIME_ONEDNN_PACKED_H
#define RUNTIME_ONEDNN_PACKED_H

#include "include/accel/gemm.h"

/* Makes a GEMM ready that states how many weights it has, or that is in parts and of 16 bits all through; NULL where
 * it is neither, its rows cannot be shared out evenly and no weight is packed, oneDNN has no layout of its own for
 * weights, or what accel_keep_packed gave has no space for them. */
struct accel_packed *rt_open_packed(const struct accel_gemm *gemm);

/* accel_multiply by it; false, and nothing is done: b is one weight more than were stated. */
bool rt_multiply_packed(const struct accel_gemm *gemm, void *y, const void *a, const void *b);

#endif
