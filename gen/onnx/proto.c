#include "gen/onnx/proto.h"

#include <string.h>

#include "runtime/base/proto.h"

static void add_head(struct text *message, int field, enum proto_wire wire, uint64_t number) {
  uint8_t head[PROTO_HEAD_MOST];
  text_add(message, head, rt_proto_head(head, field, wire, number));
}

void proto_int(struct text *message, int field, int64_t value) {
  add_head(message, field, PROTO_VARINT, (uint64_t)value);
}

void proto_float(struct text *message, int field, float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  add_head(message, field, PROTO_FIXED32, bits);
}

void proto_begin(struct text *message, int field, uint64_t count) {
  add_head(message, field, PROTO_LENGTH, count);
}

void proto_bytes(struct text *message, int field, const void *bytes, size_t count) {
  proto_begin(message, field, count);
  text_add(message, bytes, count);
}

void proto_text(struct text *message, int field, const char *value) {
  proto_bytes(message, field, value, strlen(value));
}

void proto_message(struct text *message, int field, const struct text *inner) {
  proto_bytes(message, field, inner->bytes, inner->length);
}
