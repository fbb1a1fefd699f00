/* Bytes that grow, and the fields of protocol buffers in them (protobuf.dev, "Encoding"). A failed allocation is
 * remembered, so that one test at the end is enough. */
#ifndef RUNTIME_TRACKING_BYTES_H
#define RUNTIME_TRACKING_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct bytes {
  uint8_t *data;
  size_t count, capacity;
  bool failed; /* there was no memory for some of it */
};

void rt_bytes_add(struct bytes *bytes, const void *data, size_t count);

/* Adds text as printf writes it. */
void rt_bytes_print(struct bytes *bytes, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Adds numbers of 16, 32 and 64 bits, the lowest byte first. */
void rt_bytes_u16(struct bytes *bytes, uint16_t number);
void rt_bytes_u32(struct bytes *bytes, uint32_t number);
void rt_bytes_u64(struct bytes *bytes, uint64_t number);

void rt_bytes_free(struct bytes *bytes);

/* A number of 1 to 8 bytes, the lowest byte first. */
uint64_t rt_bytes_number(const uint8_t *bytes, int count);

/* Adds a field: a number as a varint, a double, a float, bytes, a text that ends with NUL. */
void rt_proto_int(struct bytes *to, int field, uint64_t number);
void rt_proto_double(struct bytes *to, int field, double number);
void rt_proto_float(struct bytes *to, int field, float number);
void rt_proto_bytes(struct bytes *to, int field, const void *data, size_t count);
void rt_proto_text(struct bytes *to, int field, const char *text);

/* Adds doubles as one packed field. */
void rt_proto_doubles(struct bytes *to, int field, const double *numbers, size_t count);

/* Adds a message, which is freed. */
void rt_proto_message(struct bytes *to, int field, struct bytes *message);

#endif
