/* Integers and bits (PTX ISA, 9.7.1, 9.7.2, 9.7.8). */
#include "tests/cuda/standin/ptx/lanes.h"

/* A shift by the width or more leaves nothing, or the sign. */
#define SHIFT_LEFT(type, bits) (b >= bits ? 0 : (type)(a << b))
#define SHIFT_RIGHT(type, bits) (b >= bits ? 0 : (type)(a >> b))
#define SHIFT_SIGNED(type, bits) ((type)(a >> (b >= bits ? bits - 1 : b)))

__extension__ typedef unsigned __int128 u128;
__extension__ typedef __int128 s128;

static inline u64 high_u64(u64 a, u64 b) {
  return (u64)((u128)a * b >> 64);
}
static inline s64 high_s64(s64 a, s64 b) {
  return (s64)((s128)a * b >> 64);
}

/* Where nothing is defined, all bits are set. */
#define DIVIDE(type) (b == 0 ? (type) - 1 : (type)(a / b))
#define REMAIN(type) (b == 0 ? a : (type)(a % b))
#define DIVIDE_SIGNED(type) (b == 0 ? (type) - 1 : b == -1 ? (type) - (u64)a : (type)(a / b))
#define REMAIN_SIGNED(type) (b == 0 ? a : b == -1 ? (type)0 : (type)(a % b))

/* Bytes of a times bytes of b, and c. */
static inline u32 dot_of_four(u32 a, u32 b, u32 c) {
  for (int bit = 0; bit < 32; bit += 8) c += (a >> bit & 255) * (b >> bit & 255);
  return c;
}

/* Halves of a times bytes of b, from its byte `first` on, and c. */
static inline u32 dot_of_two(u32 a, u32 b, u32 c, int first) {
  return (a & 0xffff) * (b >> 8 * first & 255) + (a >> 16) * (b >> 8 * (first + 1) & 255) + c;
}

#define OF_TYPE(ONE, TWO, THREE, type, u, bits)                                                                        \
  TWO(add_##type, u, u, u, a + b)                                                                                      \
  TWO(sub_##type, u, u, u, a - b)                                                                                      \
  TWO(mul_lo_##type, u, u, u, (u64)a *b)                                                                               \
  THREE(mad_lo_##type, u, u, u, u, (u64)a *b + c)                                                                      \
  TWO(min_##type, type, type, type, a < b ? a : b)                                                                     \
  TWO(max_##type, type, type, type, a > b ? a : b)

#define OF_BITS(ONE, TWO, THREE, bits, u)                                                                              \
  TWO(and_b##bits, u, u, u, a &b)                                                                                      \
  TWO(or_b##bits, u, u, u, a | b)                                                                                      \
  TWO(xor_b##bits, u, u, u, a ^ b)                                                                                     \
  ONE(not_b##bits, u, u, ~a)                                                                                           \
  ONE(cnot_b##bits, u, u, a == 0)                                                                                      \
  TWO(shl_b##bits, u, u, u32, SHIFT_LEFT(u, bits))                                                                     \
  TWO(shr_b##bits, u, u, u32, SHIFT_RIGHT(u, bits))                                                                    \
  TWO(shr_u##bits, u, u, u32, SHIFT_RIGHT(u, bits))                                                                    \
  TWO(shr_s##bits, s##bits, s##bits, u32, SHIFT_SIGNED(s##bits, bits))                                                 \
  ONE(neg_s##bits, u, u, 0 - a)                                                                                        \
  ONE(abs_s##bits, u, s##bits, a < 0 ? 0 - (u)a : (u)a)                                                                \
  TWO(div_u##bits, u, u, u, DIVIDE(u))                                                                                 \
  TWO(rem_u##bits, u, u, u, REMAIN(u))                                                                                 \
  TWO(div_s##bits, s##bits, s##bits, s##bits, DIVIDE_SIGNED(s##bits))                                                  \
  TWO(rem_s##bits, s##bits, s##bits, s##bits, REMAIN_SIGNED(s##bits))

#define INTEGERS(ONE, TWO, THREE)                                                                                      \
  OF_TYPE(ONE, TWO, THREE, u16, u16, 16)                                                                               \
  OF_TYPE(ONE, TWO, THREE, s16, u16, 16)                                                                               \
  OF_TYPE(ONE, TWO, THREE, u32, u32, 32)                                                                               \
  OF_TYPE(ONE, TWO, THREE, s32, u32, 32)                                                                               \
  OF_TYPE(ONE, TWO, THREE, u64, u64, 64)                                                                               \
  OF_TYPE(ONE, TWO, THREE, s64, u64, 64)                                                                               \
  OF_BITS(ONE, TWO, THREE, 16, u16)                                                                                    \
  OF_BITS(ONE, TWO, THREE, 32, u32)                                                                                    \
  OF_BITS(ONE, TWO, THREE, 64, u64)                                                                                    \
  TWO(mul_hi_u16, u16, u16, u16, (u32)a *b >> 16)                                                                      \
  TWO(mul_hi_s16, s16, s16, s16, (s32)a *b >> 16)                                                                      \
  TWO(mul_hi_u32, u32, u32, u32, (u64)a *b >> 32)                                                                      \
  TWO(mul_hi_s32, s32, s32, s32, (s64)a *b >> 32)                                                                      \
  TWO(mul_hi_u64, u64, u64, u64, high_u64(a, b))                                                                       \
  TWO(mul_hi_s64, s64, s64, s64, high_s64(a, b))                                                                       \
  THREE(mad_hi_u32, u32, u32, u32, u32, ((u64)a * b >> 32) + c)                                                        \
  TWO(mul_wide_u16, u32, u16, u16, (u32)a *b)                                                                          \
  TWO(mul_wide_s16, s32, s16, s16, (s32)a *b)                                                                          \
  TWO(mul_wide_u32, u64, u32, u32, (u64)a *b)                                                                          \
  TWO(mul_wide_s32, s64, s32, s32, (s64)a *b)                                                                          \
  THREE(mad_wide_u16, u32, u16, u16, u32, (u32)a *b + c)                                                               \
  THREE(mad_wide_s16, u32, s16, s16, u32, (u32)((s32)a * b) + c)                                                       \
  THREE(mad_wide_u32, u64, u32, u32, u64, (u64)a *b + c)                                                               \
  THREE(mad_wide_s32, u64, s32, s32, u64, (u64)((s64)a * b) + c)                                                       \
  ONE(popc_b32, u32, u32, __builtin_popcount(a))                                                                       \
  ONE(popc_b64, u32, u64, __builtin_popcountll(a))                                                                     \
  ONE(clz_b32, u32, u32, a == 0 ? 32 : __builtin_clz(a))                                                               \
  ONE(clz_b64, u32, u64, a == 0 ? 64 : __builtin_clzll(a))                                                             \
  THREE(bfe_u32, u32, u32, u32, u32, extracted(a, b, c, 32))                                                           \
  THREE(bfe_u64, u64, u64, u32, u32, extracted(a, b, c, 64))                                                           \
  THREE(prmt_b32, u32, u32, u32, u32, permuted(a, b, c))                                                               \
  THREE(dp2a_lo_u32_u32, u32, u32, u32, u32, dot_of_two(a, b, c, 0))                                                   \
  THREE(dp2a_hi_u32_u32, u32, u32, u32, u32, dot_of_two(a, b, c, 2))                                                   \
  THREE(dp4a_u32_u32, u32, u32, u32, u32, dot_of_four(a, b, c))                                                        \
  THREE(shf_l_wrap_b32, u32, u32, u32, u32, ((u64)b << 32 | a) << (c & 31) >> 32)                                      \
  THREE(shf_r_wrap_b32, u32, u32, u32, u32, ((u64)b << 32 | a) >> (c & 31))
INTEGERS(DEFINE_ONE, DEFINE_TWO, DEFINE_THREE)

#define INSERT(bits)                                                                                                   \
  static void run_bfi_b##bits(struct warp *warp, const struct instruction *of) {                                       \
    u##bits made[LANES];                                                                                               \
    GIVEN(u##bits, a, 0)                                                                                               \
    GIVEN(u##bits, b, 1)                                                                                               \
    GIVEN(u32, c, 2)                                                                                                   \
    GIVEN(u32, d, 3)                                                                                                   \
    for (int i = 0; i < LANES; i++) made[i] = (u##bits)inserted(as[i], bs[i], cs[i], ds[i], bits);                     \
    keep_##bits(warp, of->to[0], made);                                                                                \
  }
INSERT(32)
INSERT(64)

/* ---- More than 32 bits, by a carry ---- */

/* Stores the low halves of sums, and with .cc what is above them as the carry. */
static void keep_sums(struct warp *warp, const struct instruction *of, const u64 *sums, bool carries) {
  u32 made[LANES], carry = 0;
  for (int i = 0; i < LANES; i++) {
    made[i] = (u32)sums[i];
    carry |= (u32)(sums[i] >> 32 & 1) << i;
  }
  keep_32(warp, of->to[0], made);
  if (carries) warp->carry = (carry & warp->active) | (warp->carry & ~warp->active);
}

/* A borrow is a carry, too: bit 32 of what is below 0 is set. */
#define CARRYING(name, carries, ...)                                                                                   \
  static void run_##name(struct warp *warp, const struct instruction *of) {                                            \
    u64 sums[LANES];                                                                                                   \
    u32 as[LANES], bs[LANES], cs[LANES] = {0};                                                                         \
    memcpy(as, from_of(warp, of, 0), sizeof as);                                                                       \
    memcpy(bs, from_of(warp, of, 1), sizeof bs);                                                                       \
    if (of->n_from > 2) memcpy(cs, from_of(warp, of, 2), sizeof cs);                                                   \
    for (int i = 0; i < LANES; i++) {                                                                                  \
      const u64 a = as[i], b = bs[i], c = cs[i], carry = warp->carry >> i & 1;                                         \
      (void)c, (void)carry;                                                                                            \
      sums[i] = __VA_ARGS__;                                                                                           \
    }                                                                                                                  \
    keep_sums(warp, of, sums, carries);                                                                                \
  }
#define CARRIES(OF_TWO, OF_THREE)                                                                                      \
  OF_TWO(add_cc_u32, true, a + b)                                                                                      \
  OF_TWO(addc_u32, false, a + b + carry)                                                                               \
  OF_TWO(addc_cc_u32, true, a + b + carry)                                                                             \
  OF_TWO(sub_cc_u32, true, a - b)                                                                                      \
  OF_TWO(subc_u32, false, a - b - carry)                                                                               \
  OF_TWO(subc_cc_u32, true, a - b - carry)                                                                             \
  OF_THREE(mad_lo_cc_u32, true, (u32)(a * b) + c)                                                                      \
  OF_THREE(mad_hi_cc_u32, true, (a * b >> 32) + c)                                                                     \
  OF_THREE(madc_lo_u32, false, (u32)(a * b) + c + carry)                                                               \
  OF_THREE(madc_hi_u32, false, (a * b >> 32) + c + carry)                                                              \
  OF_THREE(madc_lo_cc_u32, true, (u32)(a * b) + c + carry)                                                             \
  OF_THREE(madc_hi_cc_u32, true, (a * b >> 32) + c + carry)
CARRIES(CARRYING, CARRYING)

/* ---- Predicates, choices ---- */

#define LOGIC(OF)                                                                                                      \
  OF(and_pred, a &b)                                                                                                   \
  OF(or_pred, a | b)                                                                                                   \
  OF(xor_pred, a ^ b)
#define DEFINE_LOGIC(name, ...)                                                                                        \
  static void run_##name(struct warp *warp, const struct instruction *of) {                                            \
    const u32 a = predicate(warp, of->from[0]), b = predicate(warp, of->from[1]);                                      \
    keep_predicate(warp, of->to[0], __VA_ARGS__);                                                                      \
  }
LOGIC(DEFINE_LOGIC)

static void run_not_pred(struct warp *warp, const struct instruction *of) {
  keep_predicate(warp, of->to[0], ~predicate(warp, of->from[0]));
}

static void run_mov_pred(struct warp *warp, const struct instruction *of) {
  keep_predicate(warp, of->to[0], predicate(warp, of->from[0]));
}

#define MOVE(bits)                                                                                                     \
  static void run_mov_##bits(struct warp *warp, const struct instruction *of) {                                        \
    keep_##bits(warp, of->to[0], from_of(warp, of, 0));                                                                \
  }                                                                                                                    \
  static void run_selp_##bits(struct warp *warp, const struct instruction *of) {                                       \
    u##bits made[LANES];                                                                                               \
    const u32 chosen = predicate(warp, of->from[2]);                                                                   \
    GIVEN(u##bits, a, 0)                                                                                               \
    GIVEN(u##bits, b, 1)                                                                                               \
    for (int i = 0; i < LANES; i++) made[i] = chosen >> i & 1 ? as[i] : bs[i];                                         \
    keep_##bits(warp, of->to[0], made);                                                                                \
  }
MOVE(16)
MOVE(32)
MOVE(64)

void run_pack(struct warp *warp, const struct instruction *of) {
  const unsigned part = of->n_to > 1 ? of->bytes / of->n_to : (unsigned)(of->bytes / of->n_from);
  for (int to = 0; to < of->n_to; to++) {
    u64 made[LANES] = {0};
    const unsigned bytes = of->to_bytes[to];
    for (int from = 0; from < of->n_from; from++)
      for (int i = 0; i < LANES; i++)
        memcpy((char *)&made[i] + (of->n_to > 1 ? 0 : part * (unsigned)from),
               (const char *)from_of(warp, of, from) + (unsigned)i * of->from_bytes[from] +
                   (of->n_to > 1 ? part * (unsigned)to : 0),
               part);
    char narrow[8 * LANES];
    for (int i = 0; i < LANES; i++) memcpy(narrow + (unsigned)i * bytes, &made[i], bytes);
    keep_lanes(warp, of->to[to], narrow, bytes);
  }
}

#define MOVES(type, bits)                                                                                              \
  {"mov_" #type, run_mov_##bits, bits / 8, {bits / 8}},                                                                \
      {"selp_" #type, run_selp_##bits, bits / 8, {bits / 8, bits / 8, PREDICATE}},
#define ROW_LOGIC(name, ...) {#name, run_##name, PREDICATE, {PREDICATE, PREDICATE}},
#define ROW_CARRY_TWO(name, ...) {#name, run_##name, 4, {4, 4}},
#define ROW_CARRY_THREE(name, ...) {#name, run_##name, 4, {4, 4, 4}},

static const struct form rows[] = {
    INTEGERS(ROW_ONE, ROW_TWO, ROW_THREE)        //
    CARRIES(ROW_CARRY_TWO, ROW_CARRY_THREE)      //
    LOGIC(ROW_LOGIC)                             //
    MOVES(b16, 16) MOVES(u16, 16) MOVES(s16, 16) //
    MOVES(b32, 32) MOVES(u32, 32) MOVES(s32, 32) //
    MOVES(f32, 32) MOVES(b64, 64) MOVES(u64, 64) //
    MOVES(s64, 64) MOVES(f64, 64)                //
    {"not_pred", run_not_pred, PREDICATE, {PREDICATE}},
    {"mov_pred", run_mov_pred, PREDICATE, {PREDICATE}},
    {"bfi_b32", run_bfi_b32, 4, {4, 4, 4, 4}},
    {"bfi_b64", run_bfi_b64, 8, {8, 8, 4, 4}},
};
const struct forms integer_forms = {rows, sizeof rows / sizeof *rows};
