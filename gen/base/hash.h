/* Hashes of bytes. */
#ifndef ACCEL_BASE_HASH_H
#define ACCEL_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

/* FNV-1a of 64 bits (draft-eastlake-fnv). */
uint64_t hash_bytes(const void *bytes, size_t count);

#endif
