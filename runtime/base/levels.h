/* The levels of codes of 4 and 8 bits, as bitsandbytes has them (include/accel/quantized_gemm.h). */
#ifndef RUNTIME_BASE_LEVELS_H
#define RUNTIME_BASE_LEVELS_H

#include "include/accel/dtype.h"

#include <stdint.h>

enum { LEVELS_4 = 16, LEVELS_8 = 256 };

/* By code: NF4 (QLoRA, appendix E), ascending; FP4: a sign and a magnitude out of 0, 1/192, 2/3, 1, 1/3, 1/2, 1/6, 1/4;
 * INT8: NULL. */
const float *rt_levels_4(enum accel_codes as);

/* Fills the signed dynamic map, ascending, to the bit as bitsandbytes' create_dynamic_map makes it. */
void rt_levels_8(float levels[LEVELS_8]);

/* The scales of blocks of codes: floats, or codes of 8 bits, with an outer scale for ACCEL_QUANTIZED_NESTED of them and
 * an offset for all. */
struct rt_scales {
  const void *absmax;
  const float *nested_absmax, *nested_offset; /* NULL: absmax has floats */
  const float *levels;                        /* of its codes, by rt_levels_8 */
};

/* Those of `count` blocks from `first` on, in to[count]. */
void rt_block_scales(const struct rt_scales *scales, int64_t first, int64_t count, float *to);

/* The code of element i, of which a byte has two, the first in its upper half. */
static inline int rt_code_4(const uint8_t *codes, int64_t i) {
  return i % 2 == 0 ? codes[i / 2] >> 4 : codes[i / 2] & 15;
}

#endif
