#include "gen/commands/data/source.h"

#include <stdlib.h>

#include "gen/base/path.h"
#include "gen/dataset/megatron.h"
#include "gen/tokenizer/documents.h"
#include "gen/unpack/unpack.h"
#include "runtime/data/foreign.h"
#include "runtime/data/token_file.h"

struct token_source token_source_of(struct arena *arena, const char *path, enum accel_format format, bool is_megatron) {
  struct token_source source = {.path = path, .format = format, .is_megatron = is_megatron};
  if (!is_megatron) return source;
  const char *stem = without_ending(arena, path, has_ending(path, ".bin") ? ".bin" : ".idx");
  if (stem == NULL) stem = path;
  source.path = arena_printf(arena, "%s.bin", stem);
  source.index_path = arena_printf(arena, "%s.idx", stem);
  return source;
}

/* Maps one of the two files of a dataset. */
static bool open_part(const char *path, struct mapping *mapping, struct dataset_file *file, struct problem *problem) {
  if (!rt_map(mapping, path, "give a dataset of Megatron-LM, which is NAME.idx and NAME.bin", problem)) return false;
  *file = (struct dataset_file){.path = path, .bytes = mapping->bytes, .size = mapping->size};
  return true;
}

static bool open_megatron(struct token_source *source, struct problem *problem) {
  struct dataset_file idx, bin;
  return open_part(source->index_path, &source->index, &idx, problem) &&
         open_part(source->path, &source->mapping, &bin, problem) &&
         megatron_find(&source->tokens, idx, bin, rt_map_forget, problem);
}

bool source_open(struct token_source *source, bool as_is, struct problem *problem) {
  const struct mapping *mapping = &source->mapping;
  if (source->is_megatron) return open_megatron(source, problem);
  if (!rt_map(&source->mapping, source->path, "give an existing file", problem)) return false;
  if (!rt_foreign_check(source->path, source->format, mapping->bytes, mapping->size, problem)) return false;
  source->is_shard =
      !as_is && source->format == ACCEL_BYTES && documents_is_shard((const char *)mapping->bytes, mapping->size);
  source->is_packed = !as_is && packed_as(mapping->bytes, mapping->size) != NOT_PACKED;
  return rt_tokens_find(&source->tokens, source->format, source->path, mapping->bytes, mapping->size, problem) &&
         (source->format != ACCEL_TOKENS ||
          rt_token_file_verify(source->path, mapping->bytes, mapping->size, rt_map_forget, problem));
}

void source_close(struct token_source *source) {
  if (source->is_megatron) free((void *)(uintptr_t)source->tokens.starts);
  rt_unmap(&source->mapping);
  rt_unmap(&source->index);
}
