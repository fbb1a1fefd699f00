/* SHA-256 (FIPS 180-4), for digests that name a job or a file; nothing here is secret. */
#ifndef ACCEL_BASE_SHA256_H
#define ACCEL_BASE_SHA256_H

#include <stddef.h>
#include <stdint.h>

struct sha256 {
  uint32_t state[8];
  uint64_t length; /* bytes so far */
  unsigned char block[64];
};

/* A digest of nothing yet. */
struct sha256 sha256_start(void);

/* Takes `count` more bytes. */
void sha256_add(struct sha256 *digest, const void *bytes, size_t count);

/* Ends the digest: 64 lower-case hexadecimal digits and a NUL. */
void sha256_hex(struct sha256 *digest, char hex[65]);

/* The digest of `count` bytes alone, in the same form. */
void sha256_of(const void *bytes, size_t count, char hex[65]);

#endif
