/* Floating point (PTX ISA, 9.7.3). The processor's own instructions round as IEEE 754 says; what is left are numbers
 * that are none, zeros of both signs in min and max, and the functions that a GPU only approximates: here they are the
 * nearest number, which is within the bounds of the document. */
#include <fenv.h>

#include "tests/cuda/standin/ptx/lanes.h"

static inline f32 sum(f32 a, f32 b) {
  return same_nan(a + b);
}
static inline f32 product(f32 a, f32 b) {
  return same_nan(a * b);
}
static inline f32 quotient(f32 a, f32 b) {
  return same_nan(a / b);
}
static inline f32 fused(f32 a, f32 b, f32 c) {
  return same_nan(__builtin_fmaf(a, b, c));
}
static inline f32 root(f32 a) {
  return same_nan(__builtin_sqrtf(a));
}

/* Of a number and none, the number; of zeros, -0 is less. */
#define LESS(type, bits)                                                                                               \
  static inline type least_##type(type a, type b) {                                                                    \
    if (a != a) return b;                                                                                              \
    if (b != b) return a;                                                                                              \
    if (a == b) return bits(a) > bits(b) ? a : b;                                                                      \
    return a < b ? a : b;                                                                                              \
  }                                                                                                                    \
  static inline type most_##type(type a, type b) {                                                                     \
    if (a != a) return b;                                                                                              \
    if (b != b) return a;                                                                                              \
    if (a == b) return bits(a) > bits(b) ? b : a;                                                                      \
    return a > b ? a : b;                                                                                              \
  }
LESS(f32, bits_of)
LESS(f64, bits_of_f64)

/* The nearest to what a function gives in double precision; arguments and results that are subnormal are zeros. */
static f32 power_of_two(f32 x) {
  return flushed(same_nan((f32)exp2((f64)flushed(x))));
}
static f32 power_of_two_whole(f32 x) {
  return same_nan((f32)exp2((f64)x));
}
static f32 logarithm(f32 x) {
  return same_nan((f32)log2((f64)x));
}
static f32 reciprocal_root(f32 x) {
  return same_nan((f32)(1 / sqrt((f64)x)));
}
static f32 sine(f32 x) {
  return same_nan((f32)sin((f64)x));
}
static f32 cosine(f32 x) {
  return same_nan((f32)cos((f64)x));
}
static f32 hyperbolic_tangent(f32 x) {
  return same_nan((f32)tanh((f64)x));
}

/* rcp.approx.ftz.f64 (9.7.3.14): of the upper half of the argument, to the upper half of the result. */
static f64 gross_reciprocal(f64 x) {
  u64 bits = bits_of_f64(x) & UINT64_C(0xffffffff00000000);
  if ((bits & UINT64_C(0x7ff0000000000000)) == 0) bits &= UINT64_C(1) << 63;
  const f64 made = 1 / f64_of(bits);
  if (made != made) return f64_of(UINT64_C(0x7fffffff00000000));
  bits = bits_of_f64(made);
  if ((bits & UINT64_C(0x7ff0000000000000)) == 0) return f64_of(bits & UINT64_C(1) << 63);
  return f64_of(isinf(made) ? bits : (bits + (UINT64_C(1) << 31)) & UINT64_C(0xffffffff00000000));
}
static f64 gross_reciprocal_root(f64 x) {
  u64 bits = bits_of_f64(x) & UINT64_C(0xffffffff00000000);
  if ((bits & UINT64_C(0x7ff0000000000000)) == 0) bits &= UINT64_C(1) << 63;
  const f64 made = 1 / sqrt(f64_of(bits));
  if (made != made) return f64_of(UINT64_C(0x7fffffff00000000));
  bits = bits_of_f64(made);
  return f64_of(isinf(made) ? bits : (bits + (UINT64_C(1) << 31)) & UINT64_C(0xffffffff00000000));
}

#define NEAREST(ONE, TWO, THREE)                                                                                       \
  TWO(add_f32, f32, f32, f32, sum(a, b))                                                                               \
  TWO(add_rn_f32, f32, f32, f32, sum(a, b))                                                                            \
  TWO(sub_f32, f32, f32, f32, sum(a, -b))                                                                              \
  TWO(sub_rn_f32, f32, f32, f32, sum(a, -b))                                                                           \
  TWO(mul_f32, f32, f32, f32, product(a, b))                                                                           \
  TWO(mul_rn_f32, f32, f32, f32, product(a, b))                                                                        \
  THREE(fma_rn_f32, f32, f32, f32, f32, fused(a, b, c))                                                                \
  TWO(div_rn_f32, f32, f32, f32, quotient(a, b))                                                                       \
  ONE(rcp_rn_f32, f32, f32, quotient(1, a))                                                                            \
  ONE(sqrt_rn_f32, f32, f32, root(a))                                                                                  \
  TWO(add_ftz_f32, f32, f32, f32, flushed(sum(flushed(a), flushed(b))))                                                \
  TWO(sub_ftz_f32, f32, f32, f32, flushed(sum(flushed(a), -flushed(b))))                                               \
  TWO(mul_ftz_f32, f32, f32, f32, flushed(product(flushed(a), flushed(b))))                                            \
  THREE(fma_rn_ftz_f32, f32, f32, f32, f32, flushed(fused(flushed(a), flushed(b), flushed(c))))                        \
  TWO(add_sat_f32, f32, f32, f32, saturated_f32(a + b))                                                                \
  TWO(mul_sat_f32, f32, f32, f32, saturated_f32(a *b))                                                                 \
  THREE(fma_rn_sat_f32, f32, f32, f32, f32, saturated_f32(__builtin_fmaf(a, b, c)))                                    \
  TWO(add_f64, f64, f64, f64, a + b)                                                                                   \
  TWO(add_rn_f64, f64, f64, f64, a + b)                                                                                \
  TWO(sub_f64, f64, f64, f64, a - b)                                                                                   \
  TWO(sub_rn_f64, f64, f64, f64, a - b)                                                                                \
  TWO(mul_f64, f64, f64, f64, a *b)                                                                                    \
  TWO(mul_rn_f64, f64, f64, f64, a *b)                                                                                 \
  THREE(fma_rn_f64, f64, f64, f64, f64, __builtin_fma(a, b, c))                                                        \
  TWO(div_rn_f64, f64, f64, f64, a / b)                                                                                \
  ONE(rcp_rn_f64, f64, f64, 1 / a)                                                                                     \
  ONE(sqrt_rn_f64, f64, f64, __builtin_sqrt(a))                                                                        \
  ONE(abs_f32, u32, u32, a & 0x7fffffff)                                                                               \
  ONE(neg_f32, u32, u32, a ^ 0x80000000)                                                                               \
  ONE(abs_f64, u64, u64, a &INT64_MAX)                                                                                 \
  ONE(neg_f64, u64, u64, a ^ (UINT64_C(1) << 63))                                                                      \
  TWO(copysign_f32, u32, u32, u32, (b & 0x7fffffff) | (a & 0x80000000))                                                \
  TWO(copysign_f64, u64, u64, u64, (b & INT64_MAX) | (a & UINT64_C(1) << 63))                                          \
  TWO(min_f32, f32, f32, f32, same_nan(least_f32(a, b)))                                                               \
  TWO(max_f32, f32, f32, f32, same_nan(most_f32(a, b)))                                                                \
  TWO(min_NaN_f32, f32, f32, f32, same_nan(a != a || b != b ? NAN : least_f32(a, b)))                                  \
  TWO(max_NaN_f32, f32, f32, f32, same_nan(a != a || b != b ? NAN : most_f32(a, b)))                                   \
  TWO(min_f64, f64, f64, f64, least_f64(a, b))                                                                         \
  TWO(max_f64, f64, f64, f64, most_f64(a, b))                                                                          \
  ONE(ex2_approx_ftz_f32, f32, f32, power_of_two(a))                                                                   \
  ONE(ex2_approx_f32, f32, f32, power_of_two_whole(a))                                                                 \
  ONE(lg2_approx_ftz_f32, f32, f32, flushed(logarithm(flushed(a))))                                                    \
  ONE(lg2_approx_f32, f32, f32, logarithm(a))                                                                          \
  ONE(rcp_approx_ftz_f32, f32, f32, flushed(quotient(1, flushed(a))))                                                  \
  ONE(rcp_approx_f32, f32, f32, quotient(1, a))                                                                        \
  ONE(rsqrt_approx_ftz_f32, f32, f32, reciprocal_root(flushed(a)))                                                     \
  ONE(rsqrt_approx_f32, f32, f32, reciprocal_root(a))                                                                  \
  ONE(sqrt_approx_f32, f32, f32, root(a))                                                                              \
  ONE(sqrt_approx_ftz_f32, f32, f32, root(flushed(a)))                                                                 \
  TWO(div_approx_f32, f32, f32, f32, quotient(a, b))                                                                   \
  TWO(div_full_f32, f32, f32, f32, quotient(a, b))                                                                     \
  ONE(sin_approx_f32, f32, f32, sine(a))                                                                               \
  ONE(cos_approx_f32, f32, f32, cosine(a))                                                                             \
  ONE(tanh_approx_f32, f32, f32, hyperbolic_tangent(a))                                                                \
  ONE(rcp_approx_ftz_f64, f64, f64, gross_reciprocal(a))                                                               \
  ONE(rsqrt_approx_ftz_f64, f64, f64, gross_reciprocal_root(a))
NEAREST(DEFINE_ONE, DEFINE_TWO, DEFINE_THREE)

/* ---- Other roundings ---- */

/* Nothing moves over a change of the processor's mode: the arrays are given away on both sides. */
static void round_as(int mode, void *one, void *two) {
  __asm__ volatile("" : : "r"(one), "r"(two) : "memory");
  fesetround(mode);
  __asm__ volatile("" : : "r"(one), "r"(two) : "memory");
}

#define DEFINE_ROUNDED(name, mode, type, count, ...)                                                                   \
  static void run_##name(struct warp *warp, const struct instruction *of) {                                            \
    type made[LANES], given[3][LANES];                                                                                 \
    for (int o = 0; o < (count); o++) memcpy(given[o], from_of(warp, of, o), sizeof given[o]);                         \
    round_as(mode, given, made);                                                                                       \
    for (int i = 0; i < LANES; i++) {                                                                                  \
      const type a = given[0][i], b = given[(count) > 1 ? 1 : 0][i], c = given[(count) > 2 ? 2 : 0][i];                \
      (void)b, (void)c;                                                                                                \
      made[i] = __VA_ARGS__;                                                                                           \
    }                                                                                                                  \
    round_as(FE_TONEAREST, given, made);                                                                               \
    for (int i = 0; i < LANES && sizeof(type) == 4; i++) made[i] = (type)same_nan((f32)made[i]);                       \
    keep_lanes(warp, of->to[0], made, sizeof *made);                                                                   \
  }
#define ROW_ROUNDED(name, mode, type, count, ...)                                                                      \
  {#name, run_##name, sizeof(type), {sizeof(type), (count) > 1 ? sizeof(type) : 0, (count) > 2 ? sizeof(type) : 0}},
#define OF_MODE(OF, word, mode, type, fused)                                                                           \
  OF(add_##word##_##type, mode, type, 2, a + b)                                                                        \
  OF(sub_##word##_##type, mode, type, 2, a - b)                                                                        \
  OF(mul_##word##_##type, mode, type, 2, a *b)                                                                         \
  OF(div_##word##_##type, mode, type, 2, a / b)                                                                        \
  OF(rcp_##word##_##type, mode, type, 1, 1 / a)                                                                        \
  OF(fma_##word##_##type, mode, type, 3, fused(a, b, c))
#define ROUNDED(OF)                                                                                                    \
  OF_MODE(OF, rz, FE_TOWARDZERO, f32, __builtin_fmaf)                                                                  \
  OF_MODE(OF, rm, FE_DOWNWARD, f32, __builtin_fmaf)                                                                    \
  OF_MODE(OF, rp, FE_UPWARD, f32, __builtin_fmaf)                                                                      \
  OF_MODE(OF, rz, FE_TOWARDZERO, f64, __builtin_fma)                                                                   \
  OF_MODE(OF, rm, FE_DOWNWARD, f64, __builtin_fma)                                                                     \
  OF_MODE(OF, rp, FE_UPWARD, f64, __builtin_fma)
ROUNDED(DEFINE_ROUNDED)

static const struct form rows[] = {NEAREST(ROW_ONE, ROW_TWO, ROW_THREE) ROUNDED(ROW_ROUNDED)};
const struct forms arithmetic_forms = {rows, sizeof rows / sizeof *rows};
