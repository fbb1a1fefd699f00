#include "gen/commands/data/watch.h"

#include <inttypes.h>
#include <stdlib.h>

#include "runtime/files/mapping.h"

static struct stat state_of(const char *path) {
  struct stat state = {0};
  if (stat(path, &state) != 0) state.st_size = -1;
  return state;
}

bool watch_begin(struct watch *watch, const char *const *files, int count, struct problem *problem) {
  *watch = (struct watch){.files = files, .count = count, .states = calloc((size_t)count + 1, sizeof *watch->states)};
  if (watch->states == NULL) return rt_problem(problem, "no memory for the files");
  rt_guard_mappings();
  for (int i = 0; i < count; i++) watch->states[i] = state_of(files[i]);
  return true;
}

bool watch_check(const struct watch *watch, struct problem *problem) {
  for (int i = 0; i < watch->count; i++) {
    const struct stat before = watch->states[i], now = state_of(watch->files[i]);
    if (now.st_size == before.st_size && now.st_mtim.tv_sec == before.st_mtim.tv_sec &&
        now.st_mtim.tv_nsec == before.st_mtim.tv_nsec && now.st_ino == before.st_ino)
      continue;
    rt_problem(problem, "%s: the file was changed while it was read: it had %" PRId64 " bytes, and has %" PRId64,
               watch->files[i], (int64_t)before.st_size, (int64_t)now.st_size);
    return rt_help(problem, "begin again when nothing writes to it, or give a copy of it");
  }
  return true;
}

void watch_end(struct watch *watch) {
  free(watch->states);
  *watch = (struct watch){0};
}
