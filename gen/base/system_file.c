#include "gen/base/system_file.h"

#include <ctype.h>
#include <string.h>

#include "gen/base/file.h"

const char *system_file(struct arena *arena, const char *path) {
  size_t length = 0;
  const char *text = read_bytes(arena, path, &length);
  while (text != NULL && length > 0 && isspace((unsigned char)text[length - 1])) length--;
  return text == NULL ? NULL : arena_copy(arena, text, length);
}

const char *system_value(struct arena *arena, const char *text, const char *name) {
  size_t length = strlen(name);
  for (const char *at = text; at != NULL && *at != '\0'; at += strcspn(at, "\n"), at += *at == '\n') {
    const char *sign = at + length + (strncmp(at, name, length) == 0 ? strspn(at + length, " \t") : 0);
    if (strncmp(at, name, length) != 0 || (*sign != ':' && *sign != '=')) continue;
    sign += 1 + strspn(sign + 1, " \t\"");
    return arena_copy(arena, sign, strcspn(sign, "\"\n"));
  }
  return NULL;
}

const char *system_processor_flags(struct arena *arena) {
  const char *text = system_file(arena, "/proc/cpuinfo"), *flags = system_value(arena, text, "flags");
  if (flags == NULL) flags = system_value(arena, text, "Features");
  return flags != NULL ? arena_printf(arena, " %s ", flags) : NULL;
}
