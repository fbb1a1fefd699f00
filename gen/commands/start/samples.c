#include "gen/commands/start/samples.h"

#include <stdio.h>
#include <string.h>

#include "gen/base/path.h"
#include "gen/base/text.h"
#include "runtime/data/foreign.h"
#include "runtime/data/npy.h"
#include "runtime/files/mapping.h"
#include "runtime/files/zip.h"

enum { HEAD = 1 << 16 };

/* The numbers of the first line but the last, which is the label. */
static int64_t columns_of(const char *line) {
  int64_t commas = 0;
  for (; *line != '\0' && *line != '\n'; line++) commas += *line == ',';
  return commas;
}

/* What llm.c's files begin with. */
static bool is_llmc(const char *bytes, size_t length) {
  uint32_t magic = 0;
  if (length >= sizeof magic) memcpy(&magic, bytes, sizeof magic);
  return magic == 20240520 || magic == 20240801;
}

/* The fields of the first record. A quote within a text is written with a backslash, so no text has these words. */
static void look_at_record(char *head, struct samples *samples) {
  head[strcspn(head, "\n")] = '\0';
  samples->chats = strstr(head, "\"messages\"") != NULL || strstr(head, "\"conversations\"") != NULL ||
                   (strstr(head, "\"prompt\"") != NULL && strstr(head, "\"completion\"") != NULL);
  samples->texts = !samples->chats && strstr(head, "\"text\"") != NULL;
}

bool samples_look(struct arena *arena, const char *path, struct samples *samples) {
  FILE *file = fopen(path, "rb");
  if (file == NULL) return false;
  char *head = arena_alloc(arena, HEAD + 1);
  const size_t length = fread(head, 1, HEAD, file);
  const bool good = ferror(file) == 0;
  fclose(file);
  *samples = (struct samples){.format = "bytes"};
  const enum foreign kind = has_ending(path, ".bin") ? NOT_FOREIGN : rt_foreign_as(head, length);
  if (has_ending(path, ".tok")) samples->format = "tokens";
  if (has_ending(path, ".bin")) samples->format = is_llmc(head, length) ? "llmc" : "nanogpt";
  if (has_ending(path, ".npy")) samples->format = "npy_tokens";
  if (has_ending(path, ".npz")) samples->format = "npz";
  if (has_ending(path, ".csv")) *samples = (struct samples){.format = "csv", .features = columns_of(head)};
  if (has_ending(path, ".jsonl") || has_ending(path, ".ndjson")) look_at_record(head, samples);
  samples->compressed = kind == FOREIGN_GZIP || kind == FOREIGN_ZSTD;
  return good;
}

static void add_input(struct text *out, const char *name, const struct npy *array, const struct sample_tensors *known) {
  bool whole = array->type < NPY_F4;
  for (int i = 0; i < known->count; i++)
    if (strcmp(known->items[i].name, name) == 0) whole = known->items[i].whole;
  text_printf(out, "%s%s: {dtype: %s", out->length > 1 ? ", " : "", name, whole ? "int32" : "float32");
  for (int i = 1; i < array->rank; i++)
    text_printf(out, "%s%lld", i > 1 ? ", " : ", shape: [", (long long)array->shape[i]);
  text_puts(out, array->rank > 1 ? "]}" : "}");
}

/* Adds the entries NAME.npy whose name a parameter of the model has. */
static bool add_arrays(struct arena *arena, struct text *out, const char *path, const struct zip *zip,
                       const struct tree *model, const struct sample_tensors *known, struct problem *problem) {
  for (int i = 0; i < zip->count; i++) {
    const struct zip_entry *entry = &zip->entries[i];
    const char *name = without_ending(arena, arena_copy(arena, (const char *)entry->name, entry->length), ".npy");
    struct npy array;
    if (name == NULL || !model_takes(model, "model", name)) continue;
    if (!rt_npy_find(&array, path, entry->bytes, entry->size, problem)) return false;
    add_input(out, name, &array, known);
  }
  return true;
}

bool samples_inputs(struct arena *arena, const char *path, const struct tree *model, const struct sample_tensors *known,
                    const char **inputs, struct problem *problem) {
  struct mapping mapping;
  struct zip zip;
  struct text out = text_in(arena);
  if (!rt_map(&mapping, path, "give a .npz, as numpy.savez writes it", problem)) return false;
  bool read = rt_zip_read(&zip, path, mapping.bytes, mapping.size, problem);
  text_puts(&out, "{");
  if (read) {
    read = add_arrays(arena, &out, path, &zip, model, known, problem);
    rt_zip_free(&zip);
  }
  rt_unmap(&mapping);
  if (read && out.length == 1) read = rt_problem(problem, "%s: no array is an input of the model", path);
  text_puts(&out, "}");
  *inputs = text_string(&out);
  return read;
}
