/* Fields of messages in protocol buffers' wire format (protobuf.dev/programming-guides/encoding), at the end of a text.
 */
#ifndef ACCEL_ONNX_PROTO_H
#define ACCEL_ONNX_PROTO_H

#include <stdint.h>

#include "gen/base/text.h"

void proto_int(struct text *message, int field, int64_t value);
void proto_float(struct text *message, int field, float value);
void proto_bytes(struct text *message, int field, const void *bytes, size_t count);
void proto_text(struct text *message, int field, const char *value);
void proto_message(struct text *message, int field, const struct text *inner);

/* What comes before `count` bytes that follow as a field. */
void proto_begin(struct text *message, int field, uint64_t count);

#endif
