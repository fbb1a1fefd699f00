#include "gen/commands/start/samples.h"

#include <stdio.h>
#include <string.h>

#include "gen/base/path.h"

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
  if (has_ending(path, ".tok")) samples->format = "tokens";
  if (has_ending(path, ".bin")) samples->format = is_llmc(head, length) ? "llmc" : "nanogpt";
  if (has_ending(path, ".npy")) samples->format = "npy_tokens";
  if (has_ending(path, ".csv")) *samples = (struct samples){.format = "csv", .features = columns_of(head)};
  if (has_ending(path, ".jsonl") || has_ending(path, ".ndjson")) look_at_record(head, samples);
  return good;
}
