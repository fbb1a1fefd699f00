/* Random numbers: the same words that the kernels of other devices draw, by the same operations on integers. All are
 * int64, which holds the 32 bits of a word and the product of two. */
#include "gen/stablehlo/maker.h"

/* An integer that float64 does not hold. */
static struct hlo integer(struct stablehlo *hlo, uint64_t value) {
  return hlo_op(hlo, (struct shape){0}, HLO_I64, "stablehlo.constant dense<%lld> : tensor<i64>", (long long)value);
}

static struct hlo shifted(struct stablehlo *hlo, struct hlo x, int bits) {
  return hlo_binary(hlo, "shift_right_logical", x, hlo_number(bits));
}

static struct hlo low_half(struct stablehlo *hlo, struct hlo x) {
  return hlo_binary(hlo, "and", x, hlo_number(4294967295.0));
}

static struct hlo either(struct stablehlo *hlo, struct hlo a, struct hlo b) {
  return hlo_binary(hlo, "xor", a, b);
}

/* z with its upper bits mixed into the lower ones, times a number (accel_stream of accel/cpu/draws.h). */
static struct hlo mixed(struct stablehlo *hlo, struct hlo z, int bits, uint64_t factor) {
  return hlo_mul(hlo, either(hlo, z, shifted(hlo, z, bits)), integer(hlo, factor));
}

struct hlo hlo_call_key(struct stablehlo *hlo, const struct call *call, int iteration) {
  const uint64_t position = (uint64_t)call->number * 65536 + (uint64_t)(call->first + call->step * iteration);
  const uint64_t golden = UINT64_C(0x9E3779B97F4A7C15), own = call->callee->group ? position : position + 1;
  struct hlo z = hlo_add(hlo, hlo->function->key, integer(hlo, golden * own));
  if (call->callee->group) return z;
  z = mixed(hlo, z, 30, UINT64_C(0xBF58476D1CE4E5B9));
  z = mixed(hlo, z, 27, UINT64_C(0x94D049BB133111EB));
  return either(hlo, z, shifted(hlo, z, 31));
}

struct hlo hlo_random_words(struct stablehlo *hlo, int64_t count, int64_t site) {
  const int64_t blocks = (count + 3) / 4;
  const struct shape each = shape_of(1, blocks), column = shape_of(2, blocks, INT64_C(1));
  const struct hlo key = hlo->function->key, block = hlo_iota(hlo, each, 0, HLO_I64);
  struct hlo w[4] = {low_half(hlo, block), shifted(hlo, block, 32),
                     hlo_tensor(hlo, hlo_number((double)site), each, HLO_I64),
                     hlo_tensor(hlo, hlo_number(0), each, HLO_I64)};
  struct hlo low = low_half(hlo, key), high = shifted(hlo, key, 32);
  for (int round = 0; round < 10; round++) {
    const struct hlo a = hlo_mul(hlo, w[0], hlo_number(0xD2511F53u)), b = hlo_mul(hlo, w[2], hlo_number(0xCD9E8D57u));
    w[0] = either(hlo, either(hlo, shifted(hlo, b, 32), w[1]), low);
    w[1] = low_half(hlo, b);
    w[2] = either(hlo, either(hlo, shifted(hlo, a, 32), w[3]), high);
    w[3] = low_half(hlo, a);
    low = low_half(hlo, hlo_add(hlo, low, hlo_number(0x9E3779B9u)));
    high = low_half(hlo, hlo_add(hlo, high, hlo_number(0xBB67AE85u)));
  }
  for (int i = 0; i < 4; i++) w[i] = hlo_reshape(hlo, w[i], column);
  const struct hlo all = hlo_reshape(hlo, hlo_concat(hlo, w, 4, 1), shape_of(1, 4 * blocks));
  return hlo_slice(hlo, all, 0, 0, count);
}
