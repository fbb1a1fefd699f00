/* Conversions (PTX ISA, 9.7.9.21), and of addresses (9.7.9.20). */
#include <fenv.h>

#include "tests/cuda/standin/ptx/lanes.h"

/* To an integer: what is beyond its range becomes the end of the range; what is no number becomes 0, unless one of both
 * types has 64 bits, then 1 << 63 or 1 << 31. */
#define TO_WHOLE(type, from, least, most, none)                                                                        \
  static inline type type##_of_##from(from x) {                                                                        \
    if (x != x) return (type)(none);                                                                                   \
    if (x <= (from)(least)) return (type)(least);                                                                      \
    if (x >= (from)(most)) return (type)(most);                                                                        \
    return (type)x;                                                                                                    \
  }
TO_WHOLE(u16, f32, 0, UINT16_MAX, 0)
TO_WHOLE(s16, f32, INT16_MIN, INT16_MAX, 0)
TO_WHOLE(s32, f32, INT32_MIN, INT32_MAX, 0)
TO_WHOLE(u32, f32, 0, UINT32_MAX, 0)
TO_WHOLE(s64, f32, INT64_MIN, INT64_MAX, INT64_MIN)
TO_WHOLE(u64, f32, 0, UINT64_MAX, UINT64_C(1) << 63)
TO_WHOLE(s32, f64, INT32_MIN, INT32_MAX, INT32_MIN)
TO_WHOLE(u32, f64, 0, UINT32_MAX, UINT32_C(1) << 31)
TO_WHOLE(s64, f64, INT64_MIN, INT64_MAX, INT64_MIN)
TO_WHOLE(u64, f64, 0, UINT64_MAX, UINT64_C(1) << 63)

/* 10 bits of a fraction, to the nearest, of two equally near to the larger one. */
static inline u32 tf32_of(f32 x) {
  const u32 bits = bits_of(x);
  return x != x || (bits & 0x7fffffff) == 0x7f800000 ? bits_of(same_nan(x)) : (bits + 0x1000) & ~UINT32_C(0x1fff);
}

static inline f64 saturated_f64(f64 x) {
  return x > 0 ? (x < 1 ? x : 1) : 0;
}

#define TO_FLOAT(ONE, type, from)                                                                                      \
  ONE(cvt_rn_f32_##from, f32, type, (f32)a)                                                                            \
  ONE(cvt_rn_f64_##from, f64, type, (f64)a)
#define ROUND(x, word) __builtin_##word(x)
#define ROUNDED(ONE, mode, f, d)                                                                                       \
  ONE(cvt_##mode##_f32_f32, f32, f32, same_nan(ROUND(a, f)))                                                           \
  ONE(cvt_##mode##_f64_f64, f64, f64, ROUND(a, d))                                                                     \
  ONE(cvt_##mode##_u16_f32, u16, f32, u16_of_f32(ROUND(a, f)))                                                         \
  ONE(cvt_##mode##_s16_f32, s16, f32, s16_of_f32(ROUND(a, f)))                                                         \
  ONE(cvt_##mode##_s32_f32, s32, f32, s32_of_f32(ROUND(a, f)))                                                         \
  ONE(cvt_##mode##_u32_f32, u32, f32, u32_of_f32(ROUND(a, f)))                                                         \
  ONE(cvt_##mode##_s64_f32, s64, f32, s64_of_f32(ROUND(a, f)))                                                         \
  ONE(cvt_##mode##_u64_f32, u64, f32, u64_of_f32(ROUND(a, f)))                                                         \
  ONE(cvt_##mode##_s32_f64, s32, f64, s32_of_f64(ROUND(a, d)))                                                         \
  ONE(cvt_##mode##_u32_f64, u32, f64, u32_of_f64(ROUND(a, d)))                                                         \
  ONE(cvt_##mode##_s64_f64, s64, f64, s64_of_f64(ROUND(a, d)))                                                         \
  ONE(cvt_##mode##_u64_f64, u64, f64, u64_of_f64(ROUND(a, d)))

/* Of 8 bits in a register of 16 or 32 the lower ones count. */
#define CONVERSIONS(ONE, TWO)                                                                                          \
  ONE(cvt_u32_u16, u32, u16, a)                                                                                        \
  ONE(cvt_u64_u16, u64, u16, a)                                                                                        \
  ONE(cvt_s32_u16, u32, u16, a)                                                                                        \
  ONE(cvt_u32_s16, u32, s16, a)                                                                                        \
  ONE(cvt_s32_s16, s32, s16, a)                                                                                        \
  ONE(cvt_s64_s16, s64, s16, a)                                                                                        \
  ONE(cvt_u16_u32, u16, u32, a)                                                                                        \
  ONE(cvt_u64_u32, u64, u32, a)                                                                                        \
  ONE(cvt_s64_s32, s64, s32, a)                                                                                        \
  ONE(cvt_u64_s32, u64, s32, (s64)a)                                                                                   \
  ONE(cvt_u16_u64, u16, u64, a)                                                                                        \
  ONE(cvt_u32_u64, u32, u64, a)                                                                                        \
  ONE(cvt_s32_s64, u32, u64, a)                                                                                        \
  ONE(cvt_s16_s32, u16, u32, a)                                                                                        \
  ONE(cvt_s16_s8, s16, u16, (s16)(int8_t)a)                                                                            \
  ONE(cvt_u16_u8, u16, u16, a & 255)                                                                                   \
  TO_FLOAT(ONE, u16, u16)                                                                                              \
  TO_FLOAT(ONE, s16, s16)                                                                                              \
  TO_FLOAT(ONE, u32, u32)                                                                                              \
  TO_FLOAT(ONE, s32, s32)                                                                                              \
  TO_FLOAT(ONE, u64, u64)                                                                                              \
  TO_FLOAT(ONE, s64, s64)                                                                                              \
  ROUNDED(ONE, rni, rintf, rint)                                                                                       \
  ROUNDED(ONE, rzi, truncf, trunc)                                                                                     \
  ROUNDED(ONE, rmi, floorf, floor)                                                                                     \
  ROUNDED(ONE, rpi, ceilf, ceil)                                                                                       \
  ONE(cvt_f64_f32, f64, f32, (f64)a)                                                                                   \
  ONE(cvt_rn_f32_f64, f32, f64, same_nan((f32)a))                                                                      \
  ONE(cvt_sat_f32_f32, f32, f32, saturated_f32(a))                                                                     \
  ONE(cvt_sat_f64_f64, f64, f64, saturated_f64(a))                                                                     \
  ONE(cvt_rn_bf16_f32, u16, f32, bf16_of(a))                                                                           \
  ONE(cvt_f32_bf16, f32, u16, f32_of_bf16(a))                                                                          \
  TWO(cvt_rn_bf16x2_f32, u32, f32, f32, (u32)bf16_of(a) << 16 | bf16_of(b))                                            \
  ONE(cvt_rn_f16_f32, u16, f32, f16_of(a))                                                                             \
  ONE(cvt_f32_f16, f32, u16, f32_of_f16(a))                                                                            \
  ONE(cvt_rna_tf32_f32, u32, f32, tf32_of(a))                                                                          \
  TWO(cvt_rn_f16x2_f32, u32, f32, f32, (u32)f16_of(a) << 16 | f16_of(b))                                               \
  ONE(cvta_to_global_u64, u64, u64, a)                                                                                 \
  ONE(cvta_global_u64, u64, u64, a)                                                                                    \
  ONE(cvta_shared_u64, u64, u64, a + SHARED_WINDOW)                                                                    \
  ONE(cvta_to_shared_u64, u64, u64, a - SHARED_WINDOW)                                                                 \
  ONE(cvta_local_u64, u64, u64, a + LOCAL_WINDOW)                                                                      \
  ONE(cvta_to_local_u64, u64, u64, a - LOCAL_WINDOW)
CONVERSIONS(DEFINE_ONE, DEFINE_TWO)

static const struct form rows[] = {CONVERSIONS(ROW_ONE, ROW_TWO)};
const struct forms conversion_forms = {rows, sizeof rows / sizeof *rows};
