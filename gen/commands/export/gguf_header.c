#include "gen/commands/export/gguf_header.h"

#include <string.h>

enum value_type {
  VALUE_UINT32 = 4,
  VALUE_INT32 = 5,
  VALUE_FLOAT32 = 6,
  VALUE_BOOL = 7,
  VALUE_TEXT = 8,
  VALUE_LIST = 9
};

static void add_number(struct text *out, uint64_t number, int bytes) {
  for (int i = 0; i < bytes; i++) text_add(out, &(unsigned char){(unsigned char)(number >> 8 * i)}, 1);
}

static void add_string(struct text *out, const char *string) {
  const size_t length = strlen(string);
  add_number(out, length, 8);
  text_add(out, string, length);
}

static void add_float(struct text *out, float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  add_number(out, bits, 4);
}

static void add_key(struct gguf_metadata *metadata, const char *key, enum value_type type) {
  add_string(&metadata->bytes, key);
  add_number(&metadata->bytes, type, 4);
  metadata->count++;
}

void gguf_add_uint32(struct gguf_metadata *metadata, const char *key, uint32_t value) {
  add_key(metadata, key, VALUE_UINT32);
  add_number(&metadata->bytes, value, 4);
}

void gguf_add_float32(struct gguf_metadata *metadata, const char *key, float value) {
  add_key(metadata, key, VALUE_FLOAT32);
  add_float(&metadata->bytes, value);
}

void gguf_add_bool(struct gguf_metadata *metadata, const char *key, bool value) {
  add_key(metadata, key, VALUE_BOOL);
  add_number(&metadata->bytes, value, 1);
}

void gguf_add_text(struct gguf_metadata *metadata, const char *key, const char *value) {
  add_key(metadata, key, VALUE_TEXT);
  add_string(&metadata->bytes, value);
}

static void add_list(struct gguf_metadata *metadata, const char *key, enum value_type type, uint64_t count) {
  add_key(metadata, key, VALUE_LIST);
  add_number(&metadata->bytes, type, 4);
  add_number(&metadata->bytes, count, 8);
}

void gguf_add_texts(struct gguf_metadata *metadata, const char *key, const char *const *values, uint64_t count) {
  add_list(metadata, key, VALUE_TEXT, count);
  for (uint64_t i = 0; i < count; i++) add_string(&metadata->bytes, values[i]);
}

void gguf_add_int32s(struct gguf_metadata *metadata, const char *key, const int32_t *values, uint64_t count) {
  add_list(metadata, key, VALUE_INT32, count);
  for (uint64_t i = 0; i < count; i++) add_number(&metadata->bytes, (uint32_t)values[i], 4);
}

void gguf_add_bools(struct gguf_metadata *metadata, const char *key, const bool *values, uint64_t count) {
  add_list(metadata, key, VALUE_BOOL, count);
  for (uint64_t i = 0; i < count; i++) add_number(&metadata->bytes, values[i], 1);
}

void gguf_add_float32s(struct gguf_metadata *metadata, const char *key, const float *values, uint64_t count) {
  add_list(metadata, key, VALUE_FLOAT32, count);
  for (uint64_t i = 0; i < count; i++) add_float(&metadata->bytes, values[i]);
}

void gguf_add_tensor(struct text *tensors, const char *name, int rank, const int64_t *shape, uint32_t type,
                     uint64_t offset) {
  add_string(tensors, name);
  add_number(tensors, (uint32_t)rank, 4);
  for (int i = rank - 1; i >= 0; i--) add_number(tensors, (uint64_t)shape[i], 8);
  add_number(tensors, type, 4);
  add_number(tensors, offset, 8);
}

struct text gguf_header(struct arena *arena, const struct gguf_metadata *metadata, const struct text *tensors,
                        uint64_t n_tensors) {
  struct text out = text_in(arena);
  text_puts(&out, "GGUF");
  add_number(&out, 3, 4); /* the version */
  add_number(&out, n_tensors, 8);
  add_number(&out, metadata->count, 8);
  text_add(&out, metadata->bytes.bytes, metadata->bytes.length);
  text_add(&out, tensors->bytes, tensors->length);
  while (out.length % GGUF_ALIGNMENT != 0) add_number(&out, 0, 1);
  return out;
}
