/* A Feistel network on the smallest power of two that holds n, and cycle walking down to n (Black and Rogaway, "Ciphers
 * with arbitrary finite domains", CT-RSA 2002, sections 4 and 5). Its keys are Philox words; its round function only
 * has to mix well, not to keep secrets. (Mitchell, Stokes, Frank, Holmes, "Bandwidth-optimal random shuffling for
 * GPUs", ACM TOPC 9, 2022, measure how well such networks shuffle.) */
#include "runtime/random/permutation.h"

#include "runtime/base/wide.h"
#include "runtime/random/philox.h"

/* Each changes one half by a function of the other. For large n a few do; for every order of 7 things to be about as
 * frequent as any other it takes 24, by our test as by theirs. */
enum { HALF_ROUNDS = 24 };

/* Values that the widest registers take at once, and so few that they are as fast alone. */
enum { WIDTH = 16, FEW = 4 };

/* The finaliser of MurmurHash3 (A. Appleby): every bit in changes every bit out with a probability near one half. */
RT_INLINED uint32_t mix(uint32_t x) {
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

/* A bijection of [0, 2^bits) for each value: every half round is undone by itself. */
RT_INLINED void rt_pass_network_body(const struct network *network, int count, uint64_t *values) {
  uint32_t low[PERMUTED_AT_ONCE] = {0}, high[PERMUTED_AT_ONCE] = {0};
  const int lanes = count < FEW ? count : (count + WIDTH - 1) / WIDTH * WIDTH; /* whole registers, or one by one */
  for (int i = 0; i < count; i++) {
    low[i] = (uint32_t)values[i] & network->low_mask;
    high[i] = (uint32_t)(values[i] >> network->low_bits);
  }
  for (int round = 0; round < HALF_ROUNDS; round += 2) {
    const uint32_t first = network->key[round], second = network->key[round + 1];
#pragma omp simd
    for (int i = 0; i < lanes; i++) {
      low[i] ^= mix(high[i] ^ first) & network->low_mask;
      high[i] ^= mix(low[i] ^ second) & network->high_mask;
    }
  }
  for (int i = 0; i < count; i++) values[i] = (uint64_t)high[i] << network->low_bits | low[i];
}

RT_FOR_WIDTHS(rt_pass_network, (const struct network *network, int count, uint64_t *values), (network, count, values))

void rt_permute_all(uint64_t seed, uint64_t stream, uint64_t n, int count, uint64_t *indices) {
  const struct network network = make_network(seed, stream, bits_for(n));
  uint64_t walking[PERMUTED_AT_ONCE];
  int slot[PERMUTED_AT_ONCE], left = count;
  for (int i = 0; i < count; i++) {
    walking[i] = indices[i];
    slot[i] = i;
  }
  /* A walk ends: it follows the cycle that holds an index below n. On average it is under 2 steps (4 for n < 3), as n
   * is more than half of 2^bits. */
  while (left > 0) {
    rt_pass_network(&network, left, walking);
    int walk_on = 0;
    for (int i = 0; i < left; i++) {
      if (walking[i] < n) {
        indices[slot[i]] = walking[i];
        continue;
      }
      walking[walk_on] = walking[i];
      slot[walk_on++] = slot[i];
    }
    left = walk_on;
  }
}

uint64_t rt_permute(uint64_t seed, uint64_t stream, uint64_t n, uint64_t index) {
  rt_permute_all(seed, stream, n, 1, &index);
  return index;
}
