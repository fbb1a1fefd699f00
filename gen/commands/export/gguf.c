/* A file of GGUF: its header, then each tensor row by row, so that no model has to fit in memory twice. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "gen/base/path.h"
#include "gen/commands/export/gguf_keys.h"
#include "gen/commands/export/gguf_tensors.h"

static bool cannot_write(const struct exported *of, const char *path) {
  diag_error(of->diags, (struct location){.file = path}, "cannot write: %s", strerror(errno));
  return false;
}

static uint64_t aligned(uint64_t bytes) {
  return (bytes + GGUF_ALIGNMENT - 1) / GGUF_ALIGNMENT * GGUF_ALIGNMENT;
}

/* The name of the folder, also of "." or "runs/llama/". */
static const char *model_name(const struct exported *of) {
  const char *folder = of->folder;
  size_t length = strlen(folder);
  while (length > 1 && folder[length - 1] == '/') length--;
  return name_in_folder(arena_copy(of->arena, folder, length));
}

static bool read_metadata(struct exported *of, enum gguf_type type, struct gguf_metadata *metadata) {
  const uint32_t kinds[] = {[GGUF_F32] = 0, [GGUF_F16] = 1, [GGUF_Q8_0] = 7}; /* of llama.cpp's llama_ftype */
  *metadata = (struct gguf_metadata){.bytes = text_in(of->arena)};
  gguf_add_text(metadata, "general.type", "model");
  gguf_add_text(metadata, "general.name", model_name(of));
  gguf_add_uint32(metadata, "general.alignment", GGUF_ALIGNMENT);
  gguf_add_uint32(metadata, "general.quantization_version", 2);
  gguf_add_uint32(metadata, "general.file_type", kinds[type]);
  const bool keys = gguf_add_keys(of, metadata);
  return keys && gguf_add_tokenizer(of, metadata);
}

static struct text tensor_list(struct exported *of, const struct gguf_tensors *tensors) {
  struct text list = text_in(of->arena);
  uint64_t offset = 0;
  for (int i = 0; i < tensors->count; i++) {
    const struct gguf_tensor *tensor = &tensors->items[i];
    gguf_add_tensor(&list, tensor->name, tensor->rank, tensor->shape, tensor->type, offset);
    offset += aligned(gguf_tensor_bytes(tensor));
  }
  return list;
}

static bool write_tensor(const struct exported *of, const struct gguf_tensor *tensor, FILE *file, const char *path) {
  static const char zeros[GGUF_ALIGNMENT];
  struct arena *rows = arena_new();
  const size_t bytes = gguf_row_bytes(tensor), rest = aligned(gguf_tensor_bytes(tensor)) - gguf_tensor_bytes(tensor);
  float *values = arena_alloc(rows, (size_t)tensor->width * sizeof *values);
  uint8_t *encoded = arena_alloc(rows, bytes);
  bool written = true, fits = true;
  for (int64_t row = 0; written && fits && row < tensor->rows; row++) {
    gguf_read_row(tensor, row, values);
    fits = gguf_encode_row(tensor, values, encoded);
    written = fwrite(encoded, 1, bytes, file) == bytes;
  }
  written = written && fwrite(zeros, 1, rest, file) == rest;
  arena_free(rows);
  if (!fits) {
    diag_error(of->diags, (struct location){.file = of->folder}, "%s has numbers that a float16 cannot hold",
               tensor->name);
    diag_help(of->diags, "--dtype f32 holds them");
    return false;
  }
  return written || cannot_write(of, path);
}

static bool write_all(struct exported *of, const struct gguf_metadata *metadata, const struct gguf_tensors *tensors,
                      FILE *file, const char *path) {
  const struct text list = tensor_list(of, tensors);
  const struct text header = gguf_header(of->arena, metadata, &list, (uint64_t)tensors->count);
  if (fwrite(header.bytes, 1, header.length, file) != header.length) return cannot_write(of, path);
  for (int i = 0; i < tensors->count; i++)
    if (!write_tensor(of, &tensors->items[i], file, path)) return false;
  return true;
}

bool gguf_write(struct exported *of, enum gguf_type type, const char *output) {
  struct gguf_metadata metadata;
  struct gguf_tensors tensors;
  const char *partial = arena_printf(of->arena, "%s.partial", output);
  if (!read_metadata(of, type, &metadata) || !gguf_find_tensors(of, type, &tensors)) return false;
  FILE *file = fopen(partial, "wb");
  if (file == NULL) return cannot_write(of, partial);
  bool written = write_all(of, &metadata, &tensors, file, partial);
  if (written && (fflush(file) != 0 || fsync(fileno(file)) != 0)) written = cannot_write(of, partial);
  if (fclose(file) != 0 && written) written = cannot_write(of, partial);
  if (written && rename(partial, output) != 0) written = cannot_write(of, output);
  if (!written) unlink(partial);
  return written;
}
