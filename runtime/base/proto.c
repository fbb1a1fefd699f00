#include "runtime/base/proto.h"

bool rt_proto_varint(const uint8_t *bytes, size_t size, size_t *at, uint64_t *number) {
  *number = 0;
  for (int shift = 0; shift < 64 && *at < size; shift += 7) {
    uint8_t byte = bytes[(*at)++];
    *number |= (uint64_t)(byte & 0x7f) << shift;
    if (byte < 0x80) return true;
  }
  return false;
}

bool rt_proto_next(const uint8_t *bytes, size_t size, size_t *at, struct proto_field *field) {
  uint64_t tag, count;
  *field = (struct proto_field){0};
  if (!rt_proto_varint(bytes, size, at, &tag)) return false;
  const enum proto_wire wire = tag & 7;
  field->field = tag >> 3;
  if (wire == PROTO_VARINT) return rt_proto_varint(bytes, size, at, &field->number);
  count = (uint64_t)rt_proto_fixed(wire);
  if (wire == PROTO_LENGTH && !rt_proto_varint(bytes, size, at, &count)) return false;
  if ((wire != PROTO_LENGTH && count == 0) || count > size - *at) return false;
  if (wire == PROTO_LENGTH) {
    field->bytes = bytes + *at;
    field->count = count;
  }
  for (uint64_t i = 0; wire != PROTO_LENGTH && i < count; i++) field->number |= (uint64_t)bytes[*at + i] << 8 * i;
  *at += count;
  return true;
}
