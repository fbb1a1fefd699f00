/* A Feistel network whose round function is Philox, on the smallest power of two that holds n, and cycle walking down
 * to n (Black and Rogaway, "Ciphers with arbitrary finite domains", CT-RSA 2002, sections 4 and 5). */
#include "permutation.h"

#include "trainer.h"

/* Each adds a function of one half to the other; Luby and Rackoff need 4, a few more cost 0.1 microseconds. */
enum { HALF_ROUNDS = 8 };

static int bits_for(uint64_t n) {
  int bits = 2; /* one for each half */
  while (bits < 64 && (n - 1) >> bits != 0) bits++;
  return bits;
}

/* A bijection of [0, 2^bits): every half round is undone by itself. */
static uint64_t feistel(uint64_t seed, uint64_t stream, int bits, uint64_t value) {
  int low_bits = bits / 2;
  uint64_t low_mask = ((uint64_t)1 << low_bits) - 1, high_mask = ((uint64_t)1 << (bits - low_bits)) - 1;
  uint64_t low = value & low_mask, high = value >> low_bits;
  for (uint64_t round = 0; round < HALF_ROUNDS; round += 2) {
    low ^= accel_random(seed, stream, round << 32 | high) & low_mask;
    high ^= accel_random(seed, stream, (round + 1) << 32 | low) & high_mask;
  }
  return high << low_bits | low;
}

uint64_t rt_permute(uint64_t seed, uint64_t stream, uint64_t n, uint64_t index) {
  int bits = bits_for(n);
  /* The walk ends: it follows the cycle that holds `index`, which is below n. On average it is under 2 steps (4 for
   * n < 3), as n is more than half of 2^bits. */
  do index = feistel(seed, stream, bits, index);
  while (index >= n);
  return index;
}
