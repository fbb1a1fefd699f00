#include "runtime/data/paths.h"

#include <glob.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool add(struct paths *paths, const char *path, struct problem *problem) {
  if (paths->count == paths->capacity) {
    size_t capacity = paths->capacity > 0 ? 2 * paths->capacity : 8;
    char **items = realloc(paths->items, capacity * sizeof *items);
    if (items == NULL) return rt_problem(problem, "no memory for the names of data files");
    paths->items = items;
    paths->capacity = capacity;
  }
  char *copy = strdup(path);
  if (copy == NULL) return rt_problem(problem, "no memory for the names of data files");
  paths->items[paths->count++] = copy;
  return true;
}

static int by_bytes(const void *a, const void *b) {
  return strcmp(*(char *const *)a, *(char *const *)b);
}

bool rt_paths_add(struct paths *paths, const char *path, const char *cure, struct problem *problem) {
  glob_t found;
  if (strpbrk(path, "*?[") == NULL || access(path, F_OK) == 0) return add(paths, path, problem);
  int status = glob(path, GLOB_NOSORT, NULL, &found);
  if (status != 0) {
    rt_problem(problem, "%s: %s", path, status == GLOB_NOMATCH ? "no file matches this pattern" : "cannot be searched");
    return rt_help(problem, "%s", cure);
  }
  qsort(found.gl_pathv, found.gl_pathc, sizeof *found.gl_pathv, by_bytes);
  bool good = true;
  for (size_t i = 0; good && i < found.gl_pathc; i++) good = add(paths, found.gl_pathv[i], problem);
  globfree(&found);
  return good;
}

void rt_paths_free(struct paths *paths) {
  for (size_t i = 0; i < paths->count; i++) free(paths->items[i]);
  free(paths->items);
  *paths = (struct paths){0};
}
