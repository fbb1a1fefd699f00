#include "runtime/random/philox.h"

#include "include/accel/trainer.h"
#include "runtime/base/wide.h"

enum { ROUNDS = 10 };
static const uint32_t MULTIPLIER0 = 0xD2511F53, MULTIPLIER1 = 0xCD9E8D57;
static const uint32_t WEYL0 = 0x9E3779B9, WEYL1 = 0xBB67AE85; /* the golden ratio, sqrt(3) - 1: the key schedule */

struct philox_block rt_philox(struct philox_block c, uint32_t key0, uint32_t key1) {
  for (int round = 0; round < ROUNDS; round++) {
    uint64_t a = (uint64_t)MULTIPLIER0 * c.word[0];
    uint64_t b = (uint64_t)MULTIPLIER1 * c.word[2];
    c = (struct philox_block){
        {(uint32_t)(b >> 32) ^ c.word[1] ^ key0, (uint32_t)b, (uint32_t)(a >> 32) ^ c.word[3] ^ key1, (uint32_t)a}};
    key0 += WEYL0;
    key1 += WEYL1;
  }
  return c;
}

struct philox_block rt_philox_block(uint64_t seed, uint64_t stream, uint64_t index) {
  struct philox_block counter = {
      {(uint32_t)index, (uint32_t)(index >> 32), (uint32_t)stream, (uint32_t)(stream >> 32)}};
  return rt_philox(counter, (uint32_t)seed, (uint32_t)(seed >> 32));
}

/* One round of one lane, in place. */
RT_INLINED void lane_round(uint32_t words[4][PHILOX_LANES], int lane, uint32_t key0, uint32_t key1) {
  uint64_t a = (uint64_t)MULTIPLIER0 * words[0][lane], b = (uint64_t)MULTIPLIER1 * words[2][lane];
  words[0][lane] = (uint32_t)(b >> 32) ^ words[1][lane] ^ key0;
  words[1][lane] = (uint32_t)b;
  words[2][lane] = (uint32_t)(a >> 32) ^ words[3][lane] ^ key1;
  words[3][lane] = (uint32_t)a;
}

RT_INLINED void rt_philox_lanes_body(uint64_t seed, uint64_t stream, uint64_t first, uint32_t words[4][PHILOX_LANES]) {
  uint32_t key0 = (uint32_t)seed, key1 = (uint32_t)(seed >> 32);
  for (int lane = 0; lane < PHILOX_LANES; lane++) {
    uint64_t index = first + (uint64_t)lane;
    words[0][lane] = (uint32_t)index;
    words[1][lane] = (uint32_t)(index >> 32);
    words[2][lane] = (uint32_t)stream;
    words[3][lane] = (uint32_t)(stream >> 32);
  }
  for (int round = 0; round < ROUNDS; round++) {
#pragma omp simd
    for (int lane = 0; lane < PHILOX_LANES; lane++) lane_round(words, lane, key0, key1);
    key0 += WEYL0;
    key1 += WEYL1;
  }
}

RT_FOR_WIDTHS(rt_philox_lanes, (uint64_t seed, uint64_t stream, uint64_t first, uint32_t words[4][PHILOX_LANES]),
              (seed, stream, first, words))

uint32_t accel_random(uint64_t seed, uint64_t stream, uint64_t index) {
  return rt_philox_block(seed, stream, index / 4).word[index % 4];
}
