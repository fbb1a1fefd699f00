#include "gen/commands/data/source.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gen/base/path.h"
#include "gen/dataset/megatron.h"
#include "gen/unpack/unpack.h"
#include "runtime/data/foreign.h"
#include "runtime/data/token_file.h"

enum { NAME_BYTES = 4000, PATH_BYTES = 4096 };

/* Maps one of the two files of a dataset; its path is in `path`. */
static bool open_part(const char *name, const char *ending, struct mapping *mapping, char path[PATH_BYTES],
                      struct dataset_file *file, struct problem *problem) {
  snprintf(path, PATH_BYTES, "%.*s%s", NAME_BYTES, name, ending);
  if (!rt_map(mapping, path, "give a dataset of Megatron-LM, which is NAME.idx and NAME.bin", problem)) return false;
  *file = (struct dataset_file){.path = path, .bytes = mapping->bytes, .size = mapping->size};
  return true;
}

static bool open_megatron(struct token_source *source, struct problem *problem) {
  char name[NAME_BYTES], idx_path[PATH_BYTES], bin_path[PATH_BYTES];
  struct dataset_file idx, bin;
  if (strlen(source->path) >= sizeof name) return rt_problem(problem, "the name of a file is too long");
  strcpy(name, source->path);
  if (has_ending(name, ".idx") || has_ending(name, ".bin")) *strrchr(name, '.') = '\0';
  return open_part(name, ".idx", &source->index, idx_path, &idx, problem) &&
         open_part(name, ".bin", &source->mapping, bin_path, &bin, problem) &&
         megatron_find(&source->tokens, idx, bin, rt_map_forget, problem);
}

bool source_open(struct token_source *source, bool as_is, struct problem *problem) {
  const struct mapping *mapping = &source->mapping;
  if (source->is_megatron) return open_megatron(source, problem);
  if (!rt_map(&source->mapping, source->path, "give an existing file", problem)) return false;
  if (!rt_foreign_check(source->path, source->format, mapping->bytes, mapping->size, problem)) return false;
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
