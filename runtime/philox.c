#include "philox.h"

#include "trainer.h"

enum { ROUNDS = 10 };

struct philox_block rt_philox(struct philox_block c, uint32_t key0, uint32_t key1) {
  for (int round = 0; round < ROUNDS; round++) {
    uint64_t a = (uint64_t)0xD2511F53u * c.word[0];
    uint64_t b = (uint64_t)0xCD9E8D57u * c.word[2];
    c = (struct philox_block){
        {(uint32_t)(b >> 32) ^ c.word[1] ^ key0, (uint32_t)b, (uint32_t)(a >> 32) ^ c.word[3] ^ key1, (uint32_t)a}};
    key0 += 0x9E3779B9u; /* the golden ratio: Weyl sequences as key schedule */
    key1 += 0xBB67AE85u; /* sqrt(3) - 1 */
  }
  return c;
}

struct philox_block rt_philox_block(uint64_t seed, uint64_t stream, uint64_t index) {
  struct philox_block counter = {
      {(uint32_t)index, (uint32_t)(index >> 32), (uint32_t)stream, (uint32_t)(stream >> 32)}};
  return rt_philox(counter, (uint32_t)seed, (uint32_t)(seed >> 32));
}

uint32_t accel_random(uint64_t seed, uint64_t stream, uint64_t index) {
  return rt_philox_block(seed, stream, index / 4).word[index % 4];
}
