#include "runtime/tracking/bytes.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/proto.h"

/* Room for `count` more. */
static bool grow(struct bytes *bytes, size_t count) {
  if (bytes->failed) return false;
  if (bytes->capacity - bytes->count >= count) return true;
  size_t capacity = bytes->count + count > 2 * bytes->capacity ? bytes->count + count : 2 * bytes->capacity;
  uint8_t *data = realloc(bytes->data, capacity);
  bytes->failed = data == NULL;
  if (data == NULL) return false;
  bytes->data = data;
  bytes->capacity = capacity;
  return true;
}

void rt_bytes_add(struct bytes *bytes, const void *data, size_t count) {
  if (count == 0 || !grow(bytes, count)) return;
  memcpy(bytes->data + bytes->count, data, count);
  bytes->count += count;
}

void rt_bytes_print(struct bytes *bytes, const char *format, ...) {
  va_list arguments, again;
  va_start(arguments, format);
  va_copy(again, arguments);
  int length = vsnprintf(NULL, 0, format, arguments);
  if (length >= 0 && grow(bytes, (size_t)length + 1)) {
    vsnprintf((char *)bytes->data + bytes->count, (size_t)length + 1, format, again);
    bytes->count += (size_t)length;
  }
  va_end(again);
  va_end(arguments);
}

static void add_number(struct bytes *bytes, uint64_t number, int count) {
  uint8_t data[8];
  for (int i = 0; i < count; i++) data[i] = (uint8_t)(number >> 8 * i);
  rt_bytes_add(bytes, data, (size_t)count);
}

void rt_bytes_u16(struct bytes *bytes, uint16_t number) {
  add_number(bytes, number, 2);
}

void rt_bytes_u32(struct bytes *bytes, uint32_t number) {
  add_number(bytes, number, 4);
}

void rt_bytes_u64(struct bytes *bytes, uint64_t number) {
  add_number(bytes, number, 8);
}

void rt_bytes_free(struct bytes *bytes) {
  free(bytes->data);
  *bytes = (struct bytes){0};
}

uint64_t rt_bytes_number(const uint8_t *bytes, int count) {
  uint64_t number = 0;
  for (int i = 0; i < count; i++) number |= (uint64_t)bytes[i] << 8 * i;
  return number;
}

/* ---- Fields that are written ---- */

static void add_head(struct bytes *to, int field, enum proto_wire wire, uint64_t number) {
  uint8_t head[PROTO_HEAD_MOST];
  rt_bytes_add(to, head, rt_proto_head(head, field, wire, number));
}

void rt_proto_int(struct bytes *to, int field, uint64_t number) {
  add_head(to, field, PROTO_VARINT, number);
}

static uint64_t bits_of(double number) {
  uint64_t bits;
  memcpy(&bits, &number, sizeof bits);
  return bits;
}

void rt_proto_double(struct bytes *to, int field, double number) {
  add_head(to, field, PROTO_FIXED64, bits_of(number));
}

void rt_proto_float(struct bytes *to, int field, float number) {
  uint32_t bits;
  memcpy(&bits, &number, sizeof bits);
  add_head(to, field, PROTO_FIXED32, bits);
}

void rt_proto_bytes(struct bytes *to, int field, const void *data, size_t count) {
  add_head(to, field, PROTO_LENGTH, count);
  rt_bytes_add(to, data, count);
}

void rt_proto_text(struct bytes *to, int field, const char *text) {
  rt_proto_bytes(to, field, text, strlen(text));
}

void rt_proto_doubles(struct bytes *to, int field, const double *numbers, size_t count) {
  add_head(to, field, PROTO_LENGTH, 8 * count);
  for (size_t i = 0; i < count; i++) rt_bytes_u64(to, bits_of(numbers[i]));
}

void rt_proto_message(struct bytes *to, int field, struct bytes *message) {
  rt_proto_bytes(to, field, message->data, message->count);
  to->failed |= message->failed;
  rt_bytes_free(message);
}
