#include "gen/base/sha256.h"

#include <stdio.h>
#include <string.h>

/* Section 4.2.2: the first 32 bits of the fractional parts of the cube roots of the first 64 primes. */
static const uint32_t K[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

struct sha256 sha256_start(void) {
  /* Section 5.3.3: the same of the square roots of the first eight primes. */
  return (struct sha256){
      .state = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19}};
}

static uint32_t rotate_right(uint32_t x, int by) {
  return x >> by | x << (32 - by);
}

/* The 64 words of the message schedule, section 6.2.2, step 1. */
static void schedule(const unsigned char block[64], uint32_t w[64]) {
  for (int t = 0; t < 16; t++) {
    const unsigned char *b = block + 4 * t;
    w[t] = (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3];
  }
  for (int t = 16; t < 64; t++) {
    uint32_t s0 = rotate_right(w[t - 15], 7) ^ rotate_right(w[t - 15], 18) ^ w[t - 15] >> 3;
    uint32_t s1 = rotate_right(w[t - 2], 17) ^ rotate_right(w[t - 2], 19) ^ w[t - 2] >> 10;
    w[t] = s1 + w[t - 7] + s0 + w[t - 16];
  }
}

/* Section 6.2.2, steps 2 to 4; v[0] to v[7] are its a to h. */
static void compress(uint32_t state[8], const unsigned char block[64]) {
  uint32_t w[64], v[8];
  schedule(block, w);
  memcpy(v, state, sizeof v);
  for (int t = 0; t < 64; t++) {
    uint32_t s1 = rotate_right(v[4], 6) ^ rotate_right(v[4], 11) ^ rotate_right(v[4], 25);
    uint32_t t1 = v[7] + s1 + ((v[4] & v[5]) ^ (~v[4] & v[6])) + K[t] + w[t];
    uint32_t s0 = rotate_right(v[0], 2) ^ rotate_right(v[0], 13) ^ rotate_right(v[0], 22);
    uint32_t t2 = s0 + ((v[0] & v[1]) ^ (v[0] & v[2]) ^ (v[1] & v[2]));
    memmove(v + 1, v, 7 * sizeof *v);
    v[4] += t1;
    v[0] = t1 + t2;
  }
  for (int i = 0; i < 8; i++) state[i] += v[i];
}

void sha256_add(struct sha256 *digest, const void *bytes, size_t count) {
  const unsigned char *at = bytes;
  while (count > 0) {
    size_t used = digest->length % 64, space = 64 - used, taken = count < space ? count : space;
    memcpy(digest->block + used, at, taken);
    digest->length += taken;
    if (used + taken == 64) compress(digest->state, digest->block);
    at += taken;
    count -= taken;
  }
}

void sha256_hex(struct sha256 *digest, char hex[65]) {
  unsigned char tail[8];
  uint64_t bits = digest->length * 8;
  for (int i = 0; i < 8; i++) tail[i] = (unsigned char)(bits >> (56 - 8 * i));
  sha256_add(digest, "\x80", 1); /* section 5.1.1: a one, zeros up to 56 bytes of a block, the length in bits */
  while (digest->length % 64 != 56) sha256_add(digest, "\0", 1);
  sha256_add(digest, tail, sizeof tail);
  for (int i = 0; i < 8; i++) snprintf(hex + 8 * i, 9, "%08x", (unsigned)digest->state[i]);
}

void sha256_of(const void *bytes, size_t count, char hex[65]) {
  struct sha256 sum = sha256_start();
  sha256_add(&sum, bytes, count);
  sha256_hex(&sum, hex);
}
