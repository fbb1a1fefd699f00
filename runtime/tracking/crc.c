#include "runtime/tracking/crc.h"

uint32_t rt_crc(int polynomial, uint32_t crc, const void *bytes, size_t size) {
  const uint32_t reversed = polynomial == CRC_OF_ZLIB ? 0xedb88320u : 0x82f63b78u;
  const uint8_t *at = bytes;
  uint32_t of_nibble[16];
  for (uint32_t i = 0; i < 16; i++) {
    uint32_t value = i;
    for (int bit = 0; bit < 4; bit++) value = value >> 1 ^ (reversed & (0u - (value & 1)));
    of_nibble[i] = value;
  }
  crc = ~crc;
  for (size_t i = 0; i < size; i++) {
    crc ^= at[i];
    crc = crc >> 4 ^ of_nibble[crc & 15];
    crc = crc >> 4 ^ of_nibble[crc & 15];
  }
  return ~crc;
}
