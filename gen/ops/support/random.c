#include "gen/ops/support/support.h"

uint32_t op_random_word(uint64_t i, uint32_t site) {
  uint32_t w[4] = {(uint32_t)(i / 4), (uint32_t)(i / 4 >> 32), site, 0}, key[2] = {0};
  for (int round = 0; round < 10; round++) {
    uint64_t a = (uint64_t)0xD2511F53u * w[0], b = (uint64_t)0xCD9E8D57u * w[2];
    w[0] = (uint32_t)(b >> 32) ^ w[1] ^ key[0];
    w[1] = (uint32_t)b;
    w[2] = (uint32_t)(a >> 32) ^ w[3] ^ key[1];
    w[3] = (uint32_t)a;
    key[0] += 0x9E3779B9u;
    key[1] += 0xBB67AE85u;
  }
  return w[i % 4];
}
