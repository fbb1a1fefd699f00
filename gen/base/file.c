#include "gen/base/file.h"

#include <stdbool.h>
#include <stdio.h>

#include "gen/base/text.h"

const char *read_bytes(struct arena *arena, const char *path, size_t *length) {
  FILE *file = fopen(path, "rb");
  if (file == NULL) return NULL;
  struct text text = text_in(arena);
  char buffer[1 << 16];
  for (size_t got; (got = fread(buffer, 1, sizeof buffer, file)) > 0;) text_add(&text, buffer, got);
  bool good = !ferror(file);
  fclose(file);
  *length = text.length;
  return good ? text_string(&text) : NULL;
}
