/* What kernels need of CUDA's bfloat16. */
#ifndef HOST_CUDA_BF16_H
#define HOST_CUDA_BF16_H

#include <stdint.h>
#include <string.h>

struct __nv_bfloat16 {
  uint16_t bits;
};

static inline float __bfloat162float(__nv_bfloat16 x) {
  const uint32_t bits = (uint32_t)x.bits << 16;
  float y;
  memcpy(&y, &bits, sizeof y);
  return y;
}

static inline __nv_bfloat16 __float2bfloat16_rn(float x) {
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return {0x7fff};
  return {(uint16_t)((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16)};
}

#endif
