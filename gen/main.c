/* accel-gen: one job in, one program out. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "gen/commands/cli/table.h"
#include "gen/commands/launch/launch.h"

/* The commit that the command was built from, see tools/version.sh; "" where nobody knows. */
extern const char accel_commit[];

/* The folder that the command itself is in; NULL when the system does not say. */
static const char *own_folder(struct arena *arena) {
  char path[4096];
  ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
  if (length <= 0) return NULL;
  path[length] = '\0';
  char *slash = strrchr(path, '/');
  return slash == NULL ? NULL : arena_copy(arena, path, (size_t)(slash - path));
}

/* What mpirun calls, see gen/commands/launch/launch.h: no command of a person's. */
static bool is_agent(int argc, char **argv) {
  return argc > 5 && strcmp(argv[1], "launch") == 0 && strcmp(argv[2], "--agent") == 0;
}

static int run(struct options *options, int argc, char **argv) {
  const struct command *command = options_read(options, argc, argv);
  return command != NULL ? command->run(options) : STATUS_BAD_JOB;
}

int main(int argc, char **argv) {
  if (is_agent(argc, argv)) return launch_agent(argv[3], argv + 4);
  struct options options = {.arena = arena_new(), .commit = accel_commit};
  options.binary = own_folder(options.arena);
  int status = run(&options, argc, argv);
  if ((fflush(stdout) != 0 || ferror(stdout)) && status == STATUS_OK) {
    perror("accel-gen: standard output");
    status = STATUS_CANNOT;
  }
  arena_free(options.arena);
  return status;
}
