#include "gen/verify/tape/philox.h"

uint64_t splitmix_mixed(uint64_t z) {
  z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
  z = (z ^ z >> 27) * 0x94D049BB133111EBu;
  return z ^ z >> 31;
}

uint64_t draw_key(uint64_t key, uint64_t number, uint64_t i) {
  return splitmix_mixed(key + SPLITMIX_STEP * (number * 65536 + i + 1));
}

/* As the paper has it: in each of ten rounds L' = mullo(R, M) and R' = mulhi(R, M) ^ k ^ L of both pairs, which are
 * exchanged; the keys grow by Weyl's sequence. */
uint32_t draw_word(uint64_t key, uint32_t site, uint64_t i) {
  enum { ROUNDS = 10 };
  static const uint64_t multiplier[2] = {0xD2511F53, 0xCD9E8D57};
  static const uint32_t step[2] = {0x9E3779B9, 0xBB67AE85};
  const uint64_t block = i / 4;
  uint32_t counter[4] = {(uint32_t)block, (uint32_t)(block >> 32), site, 0};
  uint32_t round_key[2] = {(uint32_t)key, (uint32_t)(key >> 32)};
  for (int round = 0; round < ROUNDS; round++) {
    const uint64_t first = multiplier[0] * counter[0], second = multiplier[1] * counter[2];
    const uint32_t next[4] = {(uint32_t)(second >> 32) ^ counter[1] ^ round_key[0], (uint32_t)second,
                              (uint32_t)(first >> 32) ^ counter[3] ^ round_key[1], (uint32_t)first};
    for (int k = 0; k < 4; k++) counter[k] = next[k];
    for (int k = 0; k < 2; k++) round_key[k] += step[k];
  }
  return counter[i % 4];
}
