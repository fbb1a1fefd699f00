/* The header of a file of GGUF, version 3 (ggml-org/ggml, docs/gguf.md): little-endian; metadata, then what tensors
 * there are, then their bytes, each at a multiple of GGUF_ALIGNMENT. */
#ifndef ACCEL_COMMANDS_EXPORT_GGUF_HEADER_H
#define ACCEL_COMMANDS_EXPORT_GGUF_HEADER_H

#include <stdint.h>

#include "gen/base/text.h"

enum { GGUF_ALIGNMENT = 32 };

/* Metadata as it grows. */
struct gguf_metadata {
  struct text bytes;
  uint64_t count;
};

void gguf_add_uint32(struct gguf_metadata *metadata, const char *key, uint32_t value);
void gguf_add_float32(struct gguf_metadata *metadata, const char *key, float value);
void gguf_add_bool(struct gguf_metadata *metadata, const char *key, bool value);
void gguf_add_text(struct gguf_metadata *metadata, const char *key, const char *value);

/* Lists of so many. */
void gguf_add_texts(struct gguf_metadata *metadata, const char *key, const char *const *values, uint64_t count);
void gguf_add_int32s(struct gguf_metadata *metadata, const char *key, const int32_t *values, uint64_t count);
void gguf_add_bools(struct gguf_metadata *metadata, const char *key, const bool *values, uint64_t count);
void gguf_add_float32s(struct gguf_metadata *metadata, const char *key, const float *values, uint64_t count);

/* Adds what a tensor is: its shape with the rows' length last, and where its bytes begin after the header. */
void gguf_add_tensor(struct text *tensors, const char *name, int rank, const int64_t *shape, uint32_t type,
                     uint64_t offset);

/* What comes before the tensors' bytes, to the alignment. */
struct text gguf_header(struct arena *arena, const struct gguf_metadata *metadata, const struct text *tensors,
                        uint64_t n_tensors);

#endif
