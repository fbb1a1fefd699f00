#include "gen/base/path.h"

#include <string.h>

const char *name_in_folder(const char *path) {
  const char *slash = strrchr(path, '/');
  return slash != NULL ? slash + 1 : path;
}

const char *folder_of(struct arena *arena, const char *path) {
  const char *slash = strrchr(path, '/');
  if (slash == path) return "/";
  return slash == NULL ? "." : arena_copy(arena, path, (size_t)(slash - path));
}

bool has_ending(const char *name, const char *ending) {
  size_t length = strlen(name), end = strlen(ending);
  return length > end && strcmp(name + length - end, ending) == 0;
}

const char *without_ending(struct arena *arena, const char *name, const char *ending) {
  return has_ending(name, ending) ? arena_copy(arena, name, strlen(name) - strlen(ending)) : NULL;
}
