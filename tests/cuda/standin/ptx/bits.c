#include "tests/cuda/standin/ptx/bits.h"

#include <ctype.h>
#include <stdlib.h>

#include "tests/cuda/standin/core.h"
#include "tests/cuda/standin/ptx/lanes.h"

/* Of 1 to 8 bytes. */
static u64 ones_of(unsigned bytes) {
  return UINT64_MAX >> (64 - 8 * bytes);
}

/* ---- Registers ---- */

u64 bits_of_register(const struct warp *warp, struct slot slot, unsigned bytes, int lane) {
  if (warp->defined[slot.number] >> lane & 1) return 0;
  const u64 all = bytes == PREDICATE ? UINT64_MAX : ones_of(bytes);
  return warp->partly[slot.number] >> lane & 1 ? warp->open[slot.number * LANES + (unsigned)lane] & all : all;
}

static u64 value_of(const struct warp *warp, const struct instruction *of, int number, int lane) {
  const unsigned bytes = of->from_bytes[number];
  if (bytes == PREDICATE) return predicate(warp, of->from[number]) >> lane & 1;
  u64 value = 0;
  memcpy(&value, (const char *)from_of(warp, of, number) + (unsigned)lane * bytes, bytes);
  return value;
}

/* ---- Rules: open bits of a result from values and open bits of the operands ---- */

static u64 open_mov(const struct instruction *of, const u64 *values, const u64 *open) {
  (void)of, (void)values;
  return open[0];
}

static u64 open_selp(const struct instruction *of, const u64 *values, const u64 *open) {
  (void)of;
  return open[2] != 0 ? UINT64_MAX : values[2] ? open[0] : open[1];
}

/* A bit that is there and 0 decides of and. */
static u64 open_and(const struct instruction *of, const u64 *values, const u64 *open) {
  (void)of;
  return (open[0] | open[1]) & (open[0] | values[0]) & (open[1] | values[1]);
}

static u64 open_or(const struct instruction *of, const u64 *values, const u64 *open) {
  (void)of;
  return (open[0] | open[1]) & (open[0] | ~values[0]) & (open[1] | ~values[1]);
}

static u64 open_xor(const struct instruction *of, const u64 *values, const u64 *open) {
  (void)of, (void)values;
  return open[0] | open[1];
}

static u64 open_shl(const struct instruction *of, const u64 *values, const u64 *open) {
  const u64 bits = 8 * of->from_bytes[0];
  return open[1] != 0 ? UINT64_MAX : values[1] >= bits ? 0 : open[0] << values[1];
}

static u64 open_shr(const struct instruction *of, const u64 *values, const u64 *open) {
  const u64 bits = 8 * of->from_bytes[0];
  return open[1] != 0 ? UINT64_MAX : values[1] >= bits ? 0 : open[0] >> values[1];
}

/* The sign is moved to all that is above. */
static u64 extended(u64 x, unsigned bits) {
  return (u64)((s64)(x << (64 - bits)) >> (64 - bits));
}

static u64 open_shr_signed(const struct instruction *of, const u64 *values, const u64 *open) {
  const unsigned bits = 8u * of->from_bytes[0];
  return open[1] != 0 ? UINT64_MAX : (u64)((s64)extended(open[0], bits) >> (values[1] < bits ? values[1] : bits - 1));
}

static u64 open_shf_left(const struct instruction *of, const u64 *values, const u64 *open) {
  (void)of;
  return open[2] != 0 ? UINT64_MAX : (open[1] << 32 | open[0]) << (values[2] & 31) >> 32;
}

static u64 open_shf_right(const struct instruction *of, const u64 *values, const u64 *open) {
  (void)of;
  return open[2] != 0 ? UINT64_MAX : (open[1] << 32 | open[0]) >> (values[2] & 31);
}

/* Of a position and a length 8 bits count. */
static u64 open_bfe(const struct instruction *of, const u64 *values, const u64 *open) {
  if (((open[1] | open[2]) & 255) != 0) return UINT64_MAX;
  return extracted(open[0], (u32)values[1], (u32)values[2], 8u * of->from_bytes[0]);
}

static u64 open_bfi(const struct instruction *of, const u64 *values, const u64 *open) {
  if (((open[2] | open[3]) & 255) != 0) return UINT64_MAX;
  return inserted(open[0], open[1], (u32)values[2], (u32)values[3], 8u * of->from_bytes[0]);
}

static u64 open_prmt(const struct instruction *of, const u64 *values, const u64 *open) {
  (void)of;
  return (open[2] & 0xffff) != 0 ? UINT64_MAX : permuted((u32)open[0], (u32)open[1], (u32)values[2]);
}

/* cvt.u32.s16: of the lower bits of the operand, and their sign. */
static u64 open_cvt(const struct instruction *of, const u64 *values, const u64 *open) {
  (void)values;
  const char *from = strrchr(of->name, '.') + 1;
  const unsigned bits = (unsigned)atoi(from + 1);
  return *from == 's' ? extended(open[0], bits) : open[0] & ones_of(bits / 8);
}

/* Sums and products: the lowest bits are of the operands' lowest bits alone. */
static u64 open_upward(const struct instruction *of, const u64 *values, const u64 *open) {
  (void)values;
  u64 any = 0;
  for (int i = 0; i < of->n_from; i++) any |= open[i];
  return any == 0 ? 0 : ~((any & (0 - any)) - 1);
}

/* A factor that is 0 decides of a product. */
static bool is_open_product(u64 a, u64 b, u64 open_a, u64 open_b) {
  return (open_a | open_b) != 0 && (open_a | a) != 0 && (open_b | b) != 0;
}

static u64 open_dot(const struct instruction *of, const u64 *values, const u64 *open) {
  const bool is_four = of->name[2] == '4';
  const unsigned bits = is_four ? 8 : 16, first = !is_four && of->name[5] == 'h' ? 16 : 0;
  const u64 mask = (UINT64_C(1) << bits) - 1;
  bool is_open = open[2] != 0;
  for (unsigned i = 0; i < 32 / bits; i++)
    is_open |= is_open_product(values[0] >> bits * i & mask, values[1] >> (first + 8 * i) & 255,
                               open[0] >> bits * i & mask, open[1] >> (first + 8 * i) & 255);
  return is_open ? UINT64_MAX : 0;
}

static const struct {
  const char *stem; /* the name to the bits of its type */
  bits_open *rule;
} rules[] = {{"mov.b", open_mov},
             {"mov.u", open_mov},
             {"mov.s", open_mov},
             {"mov.f", open_mov},
             {"selp.b", open_selp},
             {"selp.u", open_selp},
             {"selp.s", open_selp},
             {"selp.f", open_selp},
             {"and.b", open_and},
             {"or.b", open_or},
             {"xor.b", open_xor},
             {"not.b", open_mov},
             {"shl.b", open_shl},
             {"shr.b", open_shr},
             {"shr.u", open_shr},
             {"shr.s", open_shr_signed},
             {"shf.l.wrap.b", open_shf_left},
             {"shf.r.wrap.b", open_shf_right},
             {"bfe.u", open_bfe},
             {"bfi.b", open_bfi},
             {"prmt.b", open_prmt},
             {"add.u", open_upward},
             {"add.s", open_upward},
             {"sub.u", open_upward},
             {"sub.s", open_upward},
             {"neg.s", open_upward},
             {"mul.lo.u", open_upward},
             {"mul.lo.s", open_upward},
             {"mul.wide.u", open_upward},
             {"mul.wide.s", open_upward},
             {"mad.lo.u", open_upward},
             {"mad.lo.s", open_upward},
             {"mad.wide.u", open_upward},
             {"mad.wide.s", open_upward},
             {"dp2a.lo.u", open_dot},
             {"dp2a.hi.u", open_dot},
             {"dp4a.u", open_dot}};

static bool is_whole_type(const char *name) {
  return (name[0] == 'u' || name[0] == 's') && isdigit((unsigned char)name[1]);
}

bits_open *bits_rule(const char *name) {
  if (strncmp(name, "cvt.", 4) == 0)
    return is_whole_type(name + 4) && is_whole_type(strrchr(name, '.') + 1) ? open_cvt : NULL;
  for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
    const size_t length = strlen(rules[i].stem);
    if (strncmp(rules[i].stem, name, length) == 0 && isdigit((unsigned char)name[length])) return rules[i].rule;
  }
  return NULL;
}

/* ---- Instructions ---- */

/* A register to its parts, or parts to a register. */
static void find_packed(const struct instruction *of, const u64 *open, int lane, struct open_bits *found) {
  const unsigned part = of->bytes / (unsigned)(of->n_to > 1 ? of->n_to : of->n_from);
  u64 whole = 0;
  for (int i = 0; i < of->n_from; i++)
    whole |= (open[i] & ones_of(of->n_to > 1 ? of->bytes : part)) << 8 * part * (unsigned)i;
  for (int t = 0; t < of->n_to; t++)
    found->of[t][lane] = of->n_to > 1 ? whole >> 8 * part * (unsigned)t & ones_of(part) : whole;
}

void bits_find(const struct warp *warp, const struct instruction *of, u32 lanes, struct open_bits *found) {
  for (u32 left = lanes; left != 0; left &= left - 1) {
    const int lane = __builtin_ctz(left);
    u64 values[OPERANDS * VECTOR], open[OPERANDS * VECTOR];
    for (int i = 0; i < of->n_from; i++) {
      values[i] = value_of(warp, of, i, lane);
      open[i] = bits_of_register(warp, of->from[i], of->from_bytes[i], lane);
    }
    if (of->run == run_pack)
      find_packed(of, open, lane, found);
    else
      for (int t = 0; t < of->n_to; t++)
        found->of[t][lane] = of->opens == NULL ? UINT64_MAX : of->opens(of, values, open);
  }
}

static void keep_open(struct warp *warp, struct slot slot, unsigned bytes, int lane, u64 open) {
  const u32 bit = UINT32_C(1) << lane;
  if (bytes != PREDICATE) open &= ones_of(bytes);
  if (open == 0) return;
  warp->defined[slot.number] &= ~bit;
  warp->partly[slot.number] &= ~bit;
  if (bytes == PREDICATE || open == ones_of(bytes)) return;
  warp->partly[slot.number] |= bit;
  warp->open[slot.number * LANES + (unsigned)lane] = open;
}

void bits_keep(struct warp *warp, const struct instruction *of, u32 lanes, const struct open_bits *found) {
  if (warp->open == NULL) warp->open = malloc(warp->block->launch->kernel->n_registers * LANES * sizeof *warp->open);
  if (warp->open == NULL) fault("no memory");
  for (int t = 0; t < of->n_to; t++)
    for (u32 left = lanes; left != 0; left &= left - 1) {
      const int lane = __builtin_ctz(left);
      keep_open(warp, of->to[t], of->to_bytes[t], lane, found->of[t][lane]);
    }
}
