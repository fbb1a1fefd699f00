/* Fields of messages in protocol buffers' wire format (protobuf.dev/programming-guides/encoding), in memory of whoever
 * writes or reads them. */
#ifndef RUNTIME_BASE_PROTO_H
#define RUNTIME_BASE_PROTO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum proto_wire { PROTO_VARINT = 0, PROTO_FIXED64 = 1, PROTO_LENGTH = 2, PROTO_FIXED32 = 5 };

enum { PROTO_HEAD_MOST = 20 };

/* Bytes of a number of a fixed size; 0: it has none. */
static inline int rt_proto_fixed(enum proto_wire wire) {
  return wire == PROTO_FIXED64 ? 8 : wire == PROTO_FIXED32 ? 4 : 0;
}

static inline size_t rt_proto_write_varint(uint8_t *to, uint64_t number) {
  size_t count = 0;
  for (; number >= 0x80; number >>= 7) to[count++] = (uint8_t)(number | 0x80);
  to[count++] = (uint8_t)number;
  return count;
}

/* Writes a field's tag and then `number`: all of a number's field, or of PROTO_LENGTH the count of bytes that follow.
 * Returns how many bytes it wrote, at most PROTO_HEAD_MOST. Here, so that the generator needs no library for it. */
static inline size_t rt_proto_head(uint8_t *to, int field, enum proto_wire wire, uint64_t number) {
  const int fixed = rt_proto_fixed(wire);
  size_t count = rt_proto_write_varint(to, (uint64_t)field << 3 | (uint64_t)wire);
  for (int i = 0; i < fixed; i++) to[count++] = (uint8_t)(number >> 8 * i);
  return fixed > 0 ? count : count + rt_proto_write_varint(to + count, number);
}

/* Reads a varint at *at of `size` bytes and moves *at past it. False: it does not end there. */
bool rt_proto_varint(const uint8_t *bytes, size_t size, size_t *at, uint64_t *number);

/* A field that was read: a number of whatever type in `number`, or bytes. */
struct proto_field {
  uint64_t field, number;
  const uint8_t *bytes; /* NULL: it is a number */
  size_t count;
};

/* Reads the field at *at. False at the end, and where the bytes are no message. */
bool rt_proto_next(const uint8_t *bytes, size_t size, size_t *at, struct proto_field *field);

#endif
