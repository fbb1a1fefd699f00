/* A Feistel network on the smallest power of two that holds n, and cycle walking down to n (Black and Rogaway, "Ciphers
 * with arbitrary finite domains", CT-RSA 2002, sections 4 and 5). Its keys are Philox words; its round function only
 * has to mix well, not to keep secrets. (Mitchell, Stokes, Frank, Holmes, "Bandwidth-optimal random shuffling for
 * GPUs", ACM TOPC 9, 2022, measure how well such networks shuffle.) */
#include "runtime/random/permutation.h"

#include "runtime/random/philox.h"

/* Each changes one half by a function of the other. For large n a few do; for every order of 7 things to be about as
 * frequent as any other it takes 24, by our test as by theirs. */
enum { HALF_ROUNDS = 24 };

/* The finaliser of MurmurHash3 (A. Appleby): every bit in changes every bit out with a probability near one half. */
static uint32_t mix(uint32_t x) {
  x = (x ^ x >> 16) * 0x85ebca6b;
  x = (x ^ x >> 13) * 0xc2b2ae35;
  return x ^ x >> 16;
}

static int bits_for(uint64_t n) {
  int bits = 2; /* one for each half */
  while (bits < 64 && (n - 1) >> bits != 0) bits++;
  return bits;
}

struct network {
  int low_bits;
  uint32_t low_mask, high_mask;
  uint32_t key[HALF_ROUNDS];
};

static struct network make_network(uint64_t seed, uint64_t stream, int bits) {
  int low_bits = bits / 2, high_bits = bits - low_bits;
  struct network network = {
      low_bits, (uint32_t)(((uint64_t)1 << low_bits) - 1), (uint32_t)(((uint64_t)1 << high_bits) - 1), {0}};
  struct philox_block words = rt_philox_block(seed, stream, 0);
  for (uint32_t round = 0; round < HALF_ROUNDS; round++)
    network.key[round] = words.word[round % 4] + round * 0x9E3779B9; /* the golden ratio sets the rounds apart */
  return network;
}

/* A bijection of [0, 2^bits): every half round is undone by itself. */
static uint64_t pass(const struct network *network, uint64_t value) {
  uint32_t low = (uint32_t)value & network->low_mask, high = (uint32_t)(value >> network->low_bits);
  for (int round = 0; round < HALF_ROUNDS; round += 2) {
    low ^= mix(high ^ network->key[round]) & network->low_mask;
    high ^= mix(low ^ network->key[round + 1]) & network->high_mask;
  }
  return (uint64_t)high << network->low_bits | low;
}

uint64_t rt_permute(uint64_t seed, uint64_t stream, uint64_t n, uint64_t index) {
  struct network network = make_network(seed, stream, bits_for(n));
  /* The walk ends: it follows the cycle that holds `index`, which is below n. On average it is under 2 steps (4 for
   * n < 3), as n is more than half of 2^bits. */
  do index = pass(&network, index);
  while (index >= n);
  return index;
}
