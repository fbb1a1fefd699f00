#include "gen/base/control_group.h"

#include <stdlib.h>
#include <string.h>

#include "gen/base/system_file.h"

/* The least number that a file of this name has in the process's group and those above it; 0: none limits. */
static double least_in_groups(struct arena *arena, const char *root, const char *path, const char *file) {
  char *folder = arena_printf(arena, "%s%s", root, path);
  double least = 0;
  while (strlen(folder) >= strlen(root)) {
    const char *text = system_file(arena, arena_printf(arena, "%s/%s", folder, file));
    double limit = text != NULL ? strtod(text, NULL) : 0; /* 0 of "max" */
    const char *period = text != NULL ? strchr(text, ' ') : NULL;
    if (period != NULL) limit /= strtod(period, NULL); /* cpu.max: microseconds of a period */
    if (limit > 0 && (least == 0 || limit < least)) least = limit;
    *strrchr(folder, '/') = '\0';
  }
  return least;
}

/* The path after "ID:CONTROLLERS:" of /proc/self/cgroup; "0::" is of version 2. NULL where there is none. */
static const char *group_of(struct arena *arena, const char *controller) {
  const char *text = system_file(arena, "/proc/self/cgroup");
  for (const char *at = text; at != NULL && *at != '\0'; at += strcspn(at, "\n"), at += *at == '\n') {
    const char *names = strchr(at, ':'), *path = names != NULL ? strchr(names + 1, ':') : NULL;
    if (path == NULL) return NULL;
    const char *own = arena_copy(arena, names + 1, (size_t)(path - names - 1));
    if (strcmp(own, controller) == 0) return arena_copy(arena, path + 1, strcspn(path + 1, "\n"));
  }
  return NULL;
}

double control_group_limit(struct arena *arena, const char *file, const char *controller, const char *old_file) {
  const char *path = group_of(arena, "");
  double limit = path != NULL ? least_in_groups(arena, "/sys/fs/cgroup", path, file) : 0;
  path = limit == 0 && controller != NULL ? group_of(arena, controller) : NULL;
  if (path != NULL)
    limit = least_in_groups(arena, arena_printf(arena, "/sys/fs/cgroup/%s", controller), path, old_file);
  return limit < 1e18 ? limit : 0; /* version 1 says no limit by a number that is near 2 to the 63rd */
}
