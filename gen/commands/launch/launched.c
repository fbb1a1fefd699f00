#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gen/commands/launch/launch.h"
#include "runtime/base/terminal.h"

/* Of "a,b": 2; without hosts those of a job of Slurm, else this machine. */
static int64_t machines(const char *hosts) {
  const char *allocated = getenv("SLURM_JOB_NUM_NODES");
  int64_t count = 1;
  if (hosts == NULL) return allocated != NULL && atoi(allocated) > 0 ? atoi(allocated) : 1;
  for (const char *at = hosts; *at != '\0'; at++) count += *at == ',';
  return count;
}

static const char *version_of(struct arena *arena, const char *program) {
  struct words ask = words_in(arena);
  words_add(&ask, strchr(program, '/') != NULL ? program : arena_printf(arena, "./%s", program));
  words_add(&ask, "--version");
  return process_read(&ask);
}

/* The line of print_version of runtime/process/flags.c; a program without one has one rank. */
static bool read_ranks(const char *version, struct launched *ranks) {
  long long count = 1, timeout = 0;
  char engine[8] = "", signals[8] = "";
  const char *line = strstr(version, "\nranks ");
  static const char form[] = "\nranks %lld by %7[A-Z], timeout %lld s, a signal %7s";
  if (line != NULL && sscanf(line, form, &count, engine, &timeout, signals) != 4) return false;
  *ranks = (struct launched){.count = count,
                             .timeout = timeout,
                             .saves_on_signal = strcmp(signals, "saves") == 0,
                             .meets_by_environment = strcmp(engine, "TCP") == 0};
  return count > 0;
}

bool launched_of_program(struct arena *arena, const struct launch *launch, struct launched *ranks) {
  const char *version = version_of(arena, launch->program);
  if (version == NULL || strstr(version, "\naccel-gen ") == NULL || !read_ranks(version, ranks)) {
    fprintf(
        stderr,
        "accel-gen launch: %s --version does not print what a program of accel-gen prints; give the job before it\n",
        launch->program);
    return false;
  }
  ranks->nodes = machines(launch->hosts);
  if (ranks->count % ranks->nodes == 0) return true;
  rt_print(stderr, "accel-gen launch: %lld ranks do not go evenly on %lld machines\n", (long long)ranks->count,
           (long long)ranks->nodes);
  return false;
}
