/* Operations that every lane does for itself: the functions and rows of a table are made of lists of
 *
 *   ONE(name, type of the result, type of a, expression of a)
 *
 * and so on, where `name` is the instruction's with _ for each dot. */
#ifndef TESTS_CUDA_PTX_LANES_H
#define TESTS_CUDA_PTX_LANES_H

#include <math.h>
#include <string.h>

#include "tests/cuda/standin/ptx/warp.h"

typedef uint16_t u16;
typedef int16_t s16;
typedef uint32_t u32;
typedef int32_t s32;
typedef uint64_t u64;
typedef int64_t s64;
typedef float f32;
typedef double f64;

/* Results of the lanes that are active; the others keep what they had. */
#define KEEP(bits)                                                                                                     \
  static inline void keep_##bits(struct warp *warp, struct slot to, const void *results) {                             \
    uint##bits##_t made[LANES], before[LANES];                                                                         \
    char *at = warp->registers + to.at;                                                                                \
    memcpy(made, results, sizeof made);                                                                                \
    memcpy(before, at, sizeof before);                                                                                 \
    for (int i = 0; i < LANES; i++) before[i] = warp->active >> i & 1 ? made[i] : before[i];                           \
    memcpy(at, before, sizeof before);                                                                                 \
    warp->defined[to.number] |= warp->active;                                                                          \
  }
KEEP(16)
KEEP(32)
KEEP(64)
#undef KEEP

static inline void keep_lanes(struct warp *warp, struct slot to, const void *made, size_t bytes) {
  if (bytes == 2)
    keep_16(warp, to, made);
  else if (bytes == 4)
    keep_32(warp, to, made);
  else
    keep_64(warp, to, made);
}

static inline void keep_predicate(struct warp *warp, struct slot to, uint32_t made) {
  uint32_t before;
  memcpy(&before, warp->registers + to.at, sizeof before);
  made = (made & warp->active) | (before & ~warp->active);
  memcpy(warp->registers + to.at, &made, sizeof made);
  warp->defined[to.number] |= warp->active;
}

static inline u32 bits_of(f32 x) {
  u32 bits;
  memcpy(&bits, &x, sizeof bits);
  return bits;
}
static inline f32 f32_of(u32 bits) {
  f32 x;
  memcpy(&x, &bits, sizeof x);
  return x;
}
static inline u64 bits_of_f64(f64 x) {
  u64 bits;
  memcpy(&bits, &x, sizeof bits);
  return bits;
}
static inline f64 f64_of(u64 bits) {
  f64 x;
  memcpy(&x, &bits, sizeof x);
  return x;
}

/* In single precision a result that is not a number is always the same one (PTX ISA, 9.7.3). */
static inline f32 same_nan(f32 x) {
  return x != x ? f32_of(0x7fffffff) : x;
}

/* .ftz: a subnormal number is a zero of its sign. */
static inline f32 flushed(f32 x) {
  return (bits_of(x) & 0x7f800000) == 0 ? f32_of(bits_of(x) & 0x80000000) : x;
}

/* .sat: within 0 and 1; what is not a number is 0. */
static inline f32 saturated_f32(f32 x) {
  return x > 0 ? (x < 1 ? x : 1) : 0;
}

/* The upper 16 bits, to the nearest, of two equally near to the even one. */
static inline u16 bf16_of(f32 x) {
  const u32 bits = bits_of(x);
  return x != x ? 0x7fff : (u16)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}
static inline f32 f32_of_bf16(u16 x) {
  return same_nan(f32_of((u32)x << 16));
}

/* IEEE 754's binary16. */
static inline u16 f16_of(f32 x) {
  const u32 bits = bits_of(x), sign = bits >> 16 & 0x8000, size = bits & 0x7fffffff;
  if (x != x) return 0x7fff;
  if (size >= 0x477ff000) return (u16)(sign | 0x7c00);
  if (size >= 0x38800000) {
    const u32 near = size + 0xfff + (size >> 13 & 1) - 0x38000000;
    return (u16)(sign | near >> 13);
  }
  const f32 whole = f32_of(size) * 0x1p24f; /* subnormal: a multiple of 2^-24 */
  return (u16)(sign | (u32)__builtin_rintf(whole));
}
static inline f32 f32_of_f16(u16 x) {
  const u32 sign = (u32)(x & 0x8000) << 16, exponent = x >> 10 & 31, rest = x & 1023;
  if (exponent == 31 && rest != 0) return f32_of(0x7fffffff);
  if (exponent == 31) return f32_of(sign | 0x7f800000);
  if (exponent == 0) return f32_of(sign | bits_of((f32)rest * 0x1p-24f));
  return f32_of(sign | (exponent + 112) << 23 | rest << 13);
}

/* ---- Bits that move ---- */

static inline u64 inserted(u64 a, u64 b, u32 position, u32 length, u32 bits) {
  position &= 255;
  length &= 255;
  if (position >= bits || length == 0) return b;
  const u64 ones = length >= 64 ? UINT64_MAX : (UINT64_C(1) << length) - 1;
  return (b & ~(ones << position)) | (a & ones) << position;
}

static inline u64 extracted(u64 a, u32 position, u32 length, u32 bits) {
  position &= 255;
  length &= 255;
  if (position >= bits || length == 0) return 0;
  const u64 ones = length >= 64 ? UINT64_MAX : (UINT64_C(1) << length) - 1;
  return a >> position & ones;
}

static inline u32 permuted(u32 a, u32 b, u32 c) {
  const u64 all = (u64)b << 32 | a;
  u32 made = 0;
  for (int i = 0; i < 4; i++) {
    const u32 byte = (u32)(all >> 8 * (c >> 4 * i & 7)) & 255;
    made |= (c >> 4 * i & 8 ? (byte & 128 ? 255 : 0) : byte) << 8 * i;
  }
  return made;
}

#define GIVEN(type, name, number)                                                                                      \
  type name##s[LANES];                                                                                                 \
  memcpy(name##s, from_of(warp, of, number), sizeof name##s);

#define DEFINE_ONE(name, D, A, ...)                                                                                    \
  static void run_##name(struct warp *warp, const struct instruction *of) {                                            \
    D made[LANES];                                                                                                     \
    GIVEN(A, a, 0)                                                                                                     \
    for (int i = 0; i < LANES; i++) {                                                                                  \
      const A a = as[i];                                                                                               \
      made[i] = (D)(__VA_ARGS__);                                                                                      \
    }                                                                                                                  \
    keep_lanes(warp, of->to[0], made, sizeof *made);                                                                   \
  }
#define DEFINE_TWO(name, D, A, B, ...)                                                                                 \
  static void run_##name(struct warp *warp, const struct instruction *of) {                                            \
    D made[LANES];                                                                                                     \
    GIVEN(A, a, 0)                                                                                                     \
    GIVEN(B, b, 1)                                                                                                     \
    for (int i = 0; i < LANES; i++) {                                                                                  \
      const A a = as[i];                                                                                               \
      const B b = bs[i];                                                                                               \
      made[i] = (D)(__VA_ARGS__);                                                                                      \
    }                                                                                                                  \
    keep_lanes(warp, of->to[0], made, sizeof *made);                                                                   \
  }
#define DEFINE_THREE(name, D, A, B, C, ...)                                                                            \
  static void run_##name(struct warp *warp, const struct instruction *of) {                                            \
    D made[LANES];                                                                                                     \
    GIVEN(A, a, 0)                                                                                                     \
    GIVEN(B, b, 1)                                                                                                     \
    GIVEN(C, c, 2)                                                                                                     \
    for (int i = 0; i < LANES; i++) {                                                                                  \
      const A a = as[i];                                                                                               \
      const B b = bs[i];                                                                                               \
      const C c = cs[i];                                                                                               \
      made[i] = (D)(__VA_ARGS__);                                                                                      \
    }                                                                                                                  \
    keep_lanes(warp, of->to[0], made, sizeof *made);                                                                   \
  }
#define ROW_ONE(name, D, A, ...) {#name, run_##name, sizeof(D), {sizeof(A)}},
#define ROW_TWO(name, D, A, B, ...) {#name, run_##name, sizeof(D), {sizeof(A), sizeof(B)}},
#define ROW_THREE(name, D, A, B, C, ...) {#name, run_##name, sizeof(D), {sizeof(A), sizeof(B), sizeof(C)}},

#endif
