#include "gen/commands/data/watch.h"

#include <inttypes.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "runtime/files/mapping.h"

static struct file_state state_of(const char *path) {
  struct stat status;
  if (stat(path, &status) != 0) return (struct file_state){.size = -1};
  return (struct file_state){status.st_size, status.st_mtim, status.st_ino};
}

bool watch_begin(struct watch *watch, const char *const *files, int count, struct problem *problem) {
  *watch = (struct watch){.files = files, .count = count, .states = calloc((size_t)count + 1, sizeof *watch->states)};
  if (watch->states == NULL) return rt_problem(problem, "no memory for the files");
  rt_guard_mappings();
  for (int i = 0; i < count; i++) watch->states[i] = state_of(files[i]);
  return true;
}

bool watch_check(const struct watch *watch, struct problem *problem) {
  for (int i = 0; watch->states != NULL && i < watch->count; i++) { /* without memory nothing is watched */
    const struct file_state before = watch->states[i], now = state_of(watch->files[i]);
    if (now.size == before.size && now.changed.tv_sec == before.changed.tv_sec &&
        now.changed.tv_nsec == before.changed.tv_nsec && now.inode == before.inode)
      continue;
    rt_problem(problem, "%s: the file was changed while it was read: it had %" PRId64 " bytes, and has %" PRId64,
               watch->files[i], before.size, now.size);
    return rt_help(problem, "begin again when nothing writes to it, or give a copy of it");
  }
  return true;
}

void watch_end(struct watch *watch) {
  free(watch->states);
  *watch = (struct watch){0};
}
