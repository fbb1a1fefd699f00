#define _XOPEN_SOURCE 700 /* realpath */
#include "gen/commands/cli/inputs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "gen/base/path.h"
#include "gen/commands/cli/files.h"
#include "runtime/base/terminal.h"
#include "runtime/files/files.h"

struct inputs inputs_in(struct arena *arena) {
  return (struct inputs){.arena = arena};
}

void inputs_add(struct inputs *inputs, const char *what, const char *path) {
  if (path != NULL) ARENA_PUSH(inputs->arena, *inputs, ((struct input){what, path}));
}

/* Whether a file is in a folder, or in one of the folders in it. */
static bool lies_in(const char *file, const char *folder) {
  char *path = realpath(file, NULL);
  bool inside = false;
  for (char *slash; !inside && path != NULL && (slash = strrchr(path, '/')) != NULL && slash != path;) {
    *slash = '\0';
    inside = rt_is_same_file(path, folder);
  }
  free(path);
  return inside;
}

bool inputs_spare(const struct inputs *inputs, const char *output) {
  struct stat written;
  if (strcmp(output, "-") == 0 || stat(output, &written) != 0 || !S_ISREG(written.st_mode)) return true;
  for (int i = 0; i < inputs->count; i++) {
    const struct input *input = &inputs->items[i];
    bool folder = is_folder(input->path);
    if (folder ? !lies_in(output, input->path) : !rt_is_same_file(output, input->path)) continue;
    rt_print(stderr, "accel-gen: cannot write %s: it is %s%s, which is read\n    help: write to another file\n", output,
             folder ? "a file of " : "", input->what);
    return false;
  }
  return true;
}
