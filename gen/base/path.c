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
