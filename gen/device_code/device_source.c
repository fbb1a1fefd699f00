#include "gen/device_code/device_source.h"

#include <ctype.h>
#include <string.h>
#include <sys/stat.h>

#include "gen/base/file.h"
#include "gen/base/path.h"

/* Device code may be a stranger's, who names what has no end or never comes. */
static const char *read_source(struct arena *arena, const char *path, size_t *length) {
  struct stat status;
  return stat(path, &status) == 0 && S_ISREG(status.st_mode) ? read_bytes(arena, path, length) : NULL;
}

/* By its path, or in the folder of the device code. */
static const struct device_source *source_of(struct device_sources *sources, const char *name) {
  struct arena *arena = sources->arena;
  for (int i = 0; i < sources->count; i++)
    if (strcmp(sources->items[i].name, name) == 0) return &sources->items[i];
  struct device_source source = {.name = name, .lines.count = -1};
  const char *in_folder = arena_printf(arena, "%s/%s", folder_of(arena, sources->file), name_in_folder(name));
  size_t length;
  const char *text = read_source(arena, name, &length);
  if (text == NULL) text = read_source(arena, in_folder, &length);
  if (text != NULL) source.lines = lines_of(arena, text, length);
  ARENA_PUSH(arena, *sources, source);
  return &sources->items[sources->count - 1];
}

static bool is_word_at(const char *line, int length, int at, const char *word) {
  int size = (int)strlen(word);
  if (at + size > length || memcmp(line + at, word, (size_t)size) != 0) return false;
  if (!isalpha((unsigned char)word[0])) return true;
  bool before = at > 0 && (isalnum((unsigned char)line[at - 1]) || line[at - 1] == '_');
  bool after = at + size < length && (isalnum((unsigned char)line[at + size]) || line[at + size] == '_');
  return !before && !after;
}

static bool explains(const char *line, int length) {
  static const char *const words[] = {"for",  "while", "do",   "if",      "switch", "?",      "&&",   "||",  "min",
                                      "max",  "pow",   "sin",  "cos",     "sinf",   "cosf",   "exp",  "log", "erff",
                                      "powf", "tanhf", "sqrt", "sincosf", "expm1f", "log1pf", "logf", "expf"};
  for (int at = 0; at < length; at++)
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
      if (is_word_at(line, length, at, words[i])) return true;
  return false;
}

enum explanation device_explains(struct device_sources *sources, struct location where) {
  const struct device_source *source = source_of(sources, where.file);
  if (source->lines.count < 0) return LINE_IS_NOT_THERE;
  int line = where.line - 1;
  bool found = line < source->lines.count && explains(source->lines.starts[line], source->lines.lengths[line]);
  return found ? LINE_EXPLAINS : LINE_DOES_NOT;
}
