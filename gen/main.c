/* accel-gen: one job in, one program out. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "gen/commands/commands.h"

#define JOB_OPTIONS " --set --color "

static const struct command commands[] = {
    {"", "JOB -o FILE.c [--program KIND] [--set K=V]...", "write the program of a job",
     JOB_OPTIONS "-o --program --templates --dump --json ", true, command_generate},
    {"build", "build JOB -o PROGRAM [-v]", "write and compile it", JOB_OPTIONS "-o --program --templates -v ", true,
     command_build},
    {"plan", "plan JOB [--json] [--dump PASS]", "what it will need: memory, work",
     JOB_OPTIONS "--program --json --dump --templates ", true, command_plan},
    {"check", "check JOB [--resolved]", "check a job; print it with all defaults", JOB_OPTIONS "--resolved ", true,
     command_check},
    {"help", "help [TOPIC]", "explain a command or a key of the job", " --color ", false, command_help},
    {"version", "version", "print the version", " --color ", false, command_version},
    {0},
};

/* The folder that the command itself lies in; NULL when the system does not tell. */
static const char *own_folder(struct arena *arena) {
  char path[4096];
  ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
  if (length <= 0) return NULL;
  path[length] = '\0';
  char *slash = strrchr(path, '/');
  return slash == NULL ? NULL : arena_copy(arena, path, (size_t)(slash - path));
}

int main(int argc, char **argv) {
  struct options options = {.arena = arena_new(), .commands = commands};
  options.binary = own_folder(options.arena);
  const struct command *command = options_read(&options, argc, argv);
  int status = command != NULL ? command->run(&options) : STATUS_BAD_JOB;
  if (fflush(stdout) != 0 && status == STATUS_OK) {
    perror("accel-gen: standard output");
    status = STATUS_CANNOT;
  }
  arena_free(options.arena);
  return status;
}
