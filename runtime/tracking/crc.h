/* Cyclic redundancy checks of 32 bits. */
#ifndef RUNTIME_TRACKING_CRC_H
#define RUNTIME_TRACKING_CRC_H

#include <stddef.h>
#include <stdint.h>

/* The polynomials, with their bits reversed. */
enum { CRC_OF_ZLIB, CRC_OF_CASTAGNOLI };

/* Continues `crc`, 0 at first, with more bytes: as crc32() of zlib does, by that polynomial or by Castagnoli's, which
 * is CRC-32C (RFC 3720, appendix B.4). */
uint32_t rt_crc(int polynomial, uint32_t crc, const void *bytes, size_t size);

#endif
