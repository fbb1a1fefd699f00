/* The levels of codes of 4 and 8 bits, as bitsandbytes has them (include/accel/quantized_gemm.h). */
#ifndef RUNTIME_BASE_LEVELS_H
#define RUNTIME_BASE_LEVELS_H

#include <stdbool.h>

enum { LEVELS_4 = 16, LEVELS_8 = 256 };

/* By code: NF4 (QLoRA, appendix E), ascending; FP4: a sign and a magnitude out of 0, 1/192, 2/3, 1, 1/3, 1/2, 1/6, 1/4.
 */
const float *rt_levels_4(bool fp4);

/* Fills the signed dynamic map, ascending, to the bit as bitsandbytes' create_dynamic_map makes it. */
void rt_levels_8(float levels[LEVELS_8]);

#endif
