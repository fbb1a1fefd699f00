/* A file of GGUF: its header, then each tensor row by row, so that no model has to fit in memory twice. */
#define _GNU_SOURCE /* strcasestr */
#include <string.h>

#include "gen/base/path.h"
#include "gen/commands/cli/commands.h"
#include "gen/commands/export/gguf_keys.h"
#include "gen/commands/export/gguf_tensors.h"
#include "runtime/base/progress.h"
#include "runtime/base/terminal.h"
#include "runtime/files/files.h"

static uint64_t aligned(uint64_t bytes) {
  return (bytes + GGUF_ALIGNMENT - 1) / GGUF_ALIGNMENT * GGUF_ALIGNMENT;
}

/* The name of the folder, also of "." or "runs/llama/". llama.cpp looks at it for how added tokens are found: "phi-3"
 * or "phi3" in it strips blanks after them, "modern-bert" before "[MASK]". NULL: the file has none, since the folder's
 * own one would change that. */
static const char *model_name(const struct exported *of, bool strips) {
  static const char *const special[] = {"phi-3", "phi3", "modern-bert"};
  const char *folder = of->folder;
  size_t length = strlen(folder);
  while (length > 1 && folder[length - 1] == '/') length--;
  const char *name = name_in_folder(arena_copy(of->arena, folder, length));
  if (strips)
    return strcasestr(name, special[0]) != NULL || strcasestr(name, special[1]) != NULL
               ? name
               : arena_printf(of->arena, "%s (phi-3)", name);
  for (size_t i = 0; i < sizeof special / sizeof *special; i++)
    if (strcasestr(name, special[i]) != NULL) return NULL;
  return name;
}

static bool read_metadata(struct exported *of, enum gguf_type type, struct gguf_metadata *metadata) {
  const uint32_t kinds[] = {[GGUF_F32] = 0, [GGUF_F16] = 1, [GGUF_Q8_0] = 7}; /* of llama.cpp's llama_ftype */
  *metadata = (struct gguf_metadata){.bytes = text_in(of->arena)};
  gguf_add_text(metadata, "general.type", "model");
  gguf_add_uint32(metadata, "general.alignment", GGUF_ALIGNMENT);
  gguf_add_uint32(metadata, "general.quantization_version", 2);
  gguf_add_uint32(metadata, "general.file_type", kinds[type]);
  bool strips;
  if (!gguf_add_keys(of, metadata) || !gguf_add_tokenizer(of, metadata, &strips)) return false;
  const char *name = model_name(of, strips);
  if (name != NULL) gguf_add_text(metadata, "general.name", name);
  return true;
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

/* The row in the tensor's type; false with an error where it has a number without a place there. */
static bool encode(const struct exported *of, const struct gguf_tensor *tensor, const float *values, uint8_t *encoded) {
  const enum gguf_fit fit = gguf_encode_row(tensor, values, encoded);
  if (fit == GGUF_FITS) return true;
  diag_error(of->diags, (struct location){.file = of->folder}, "%s has numbers that %s", tensor->name,
             fit == GGUF_NOT_FINITE ? "are not finite" : "a float16 cannot hold");
  diag_help(of->diags, "--dtype f32 holds them");
  return false;
}

static int write_tensor(const struct exported *of, const struct gguf_tensor *tensor, struct writer *file) {
  static const char zeros[GGUF_ALIGNMENT];
  struct problem problem = {0};
  struct arena *rows = arena_new();
  const size_t bytes = gguf_row_bytes(tensor), rest = aligned(gguf_tensor_bytes(tensor)) - gguf_tensor_bytes(tensor);
  float *values = arena_alloc(rows, (size_t)tensor->width * sizeof *values);
  uint8_t *encoded = arena_alloc(rows, bytes);
  bool written = true, fits = true;
  for (int64_t row = 0; written && fits && row < tensor->rows; row++) {
    gguf_read_row(tensor, row, values);
    fits = encode(of, tensor, values, encoded);
    written = !fits || rt_writer_add(file, encoded, bytes, &problem);
  }
  written = written && (!fits || rt_writer_add(file, zeros, rest, &problem));
  arena_free(rows);
  if (!written) return exported_cannot_write(of, &problem);
  if (!fits) rt_writer_give_up(file, "is not written", &problem);
  return fits ? STATUS_OK : STATUS_BAD_JOB;
}

static int write_all(struct exported *of, const struct gguf_metadata *metadata, const struct gguf_tensors *tensors,
                     struct writer *file) {
  struct problem problem = {0};
  const struct text list = tensor_list(of, tensors);
  const struct text header = gguf_header(of->arena, metadata, &list, (uint64_t)tensors->count);
  if (!rt_writer_add(file, header.bytes, header.length, &problem)) return exported_cannot_write(of, &problem);
  int status = STATUS_OK;
  for (int i = 0; i < tensors->count && status == STATUS_OK; i++) status = write_tensor(of, &tensors->items[i], file);
  if (status == STATUS_OK && !rt_writer_commit(file, &problem)) return exported_cannot_write(of, &problem);
  return status;
}

int gguf_write(struct exported *of, enum gguf_type type, const char *output) {
  struct gguf_metadata metadata;
  struct gguf_tensors tensors;
  struct writer file;
  struct problem problem = {0};
  if (!read_metadata(of, type, &metadata) || !gguf_find_tensors(of, type, &tensors)) return STATUS_BAD_JOB;
  if (!rt_writer_open(&file, output, BY_RENAME, &problem)) return exported_cannot_write(of, &problem);
  rt_writer_stream(&file);
  uint64_t bytes = 0;
  for (int i = 0; i < tensors.count; i++) bytes += aligned(gguf_tensor_bytes(&tensors.items[i]));
  struct progress progress = rt_progress_begin(of->quiet ? NULL : stderr, "writes", 0, bytes);
  file.progress = &progress;
  const int status = write_all(of, &metadata, &tensors, &file);
  rt_terminal_clear();
  return status;
}
