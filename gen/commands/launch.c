/* accel-gen launch: starts the processes of a job's program, by what is there to start them. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gen/commands/commands.h"
#include "gen/commands/process.h"
#include "gen/spec/job.h"

static const char usage[] =
    "usage: accel-gen launch [--by mpirun|srun] [--hosts A,B,...] [--print] JOB PROGRAM [FLAG]...\n"
    "  Prints the command that starts PROGRAM, built of JOB, with as many processes as the job has ranks, and\n"
    "  becomes it; the FLAGs are PROGRAM's.\n"
    "  --by NAME      what starts them; without it srun inside of a job of Slurm, mpirun elsewhere\n"
    "  --hosts LIST   the machines for mpirun, as many as devices.nodes\n"
    "  --print        print the command, and that is all\n";

struct launch {
  const char *by, *hosts, *job, *program;
  bool print;
  char **flags; /* of the program, ending with NULL */
};

static bool is_option(const char *word, const char *name) {
  return word != NULL && strcmp(word, name) == 0;
}

static bool read_words(struct launch *launch, char **words) {
  for (; *words != NULL && (*words)[0] == '-'; words++) {
    if (is_option(*words, "--print"))
      launch->print = true;
    else if (is_option(*words, "--by") && words[1] != NULL)
      launch->by = *++words;
    else if (is_option(*words, "--hosts") && words[1] != NULL)
      launch->hosts = *++words;
    else
      return false;
  }
  if (words[0] == NULL || words[1] == NULL) return false;
  launch->job = words[0];
  launch->program = words[1];
  launch->flags = words + 2;
  if (launch->by == NULL) launch->by = getenv("SLURM_JOB_ID") != NULL ? "srun" : "mpirun";
  return strcmp(launch->by, "mpirun") == 0 || strcmp(launch->by, "srun") == 0;
}

/* A machine's name once for all its processes: "a:4,b:4". */
static void add_hosts(struct words *command, const char *hosts, int64_t each) {
  const char *text = "";
  for (const char *at = hosts; *at != '\0';) {
    size_t length = strcspn(at, ",");
    text =
        arena_printf(command->arena, "%s%s%.*s:%lld", text, *text != '\0' ? "," : "", (int)length, at, (long long)each);
    at += length + (at[length] == ',');
  }
  words_add(command, "--host");
  words_add(command, text);
}

static struct words command_of(struct arena *arena, const struct launch *launch, const struct job *job) {
  struct words command = words_in(arena);
  long long ranks = job->devices.ranks, nodes = job->devices.nodes;
  words_add(&command, launch->by);
  if (strcmp(launch->by, "srun") == 0) {
    words_add(&command, arena_printf(arena, "--nodes=%lld", nodes));
    words_add(&command, arena_printf(arena, "--ntasks-per-node=%lld", ranks / nodes));
    words_add(&command, "--kill-on-bad-exit=1");
    const char *each = getenv("SLURM_CPUS_PER_TASK"); /* srun does not take it from the job by itself */
    if (each != NULL) words_add(&command, arena_printf(arena, "--cpus-per-task=%s", each));
  } else {
    words_add(&command, "--bind-to");
    words_add(&command, "none");
    words_add(&command, "-n");
    words_add(&command, arena_printf(arena, "%lld", ranks));
    if (launch->hosts != NULL) add_hosts(&command, launch->hosts, ranks / nodes);
  }
  words_add(&command,
            strchr(launch->program, '/') != NULL ? launch->program : arena_printf(arena, "./%s", launch->program));
  for (char **flag = launch->flags; *flag != NULL; flag++) words_add(&command, *flag);
  return command;
}

/* One process needs nobody to start it. */
static struct words alone(const struct words *command, int program) {
  struct words words = words_in(command->arena);
  for (int i = program; i < command->count; i++) words_add(&words, command->items[i]);
  return words;
}

static int run(struct arena *arena, const struct launch *launch) {
  struct diagnostics diags = diagnostics_in(arena);
  const struct job *job = job_read(arena, launch->job, NULL, 0, &diags);
  if (job == NULL) {
    diag_print(&diags, stderr, false);
    return STATUS_BAD_JOB;
  }
  struct words command = command_of(arena, launch, job);
  int flags = 0;
  while (launch->flags[flags] != NULL) flags++;
  if (job->devices.ranks == 1) command = alone(&command, command.count - 1 - flags);
  printf("%s\n", words_text(&command));
  fflush(stdout);
  if (launch->print) return STATUS_OK;
  execvp(command.items[0], command.items);
  fprintf(stderr, "accel-gen launch: %s: %s\n", command.items[0], strerror(errno));
  return STATUS_CANNOT;
}

int command_launch(int argc, char **argv) {
  struct launch launch = {0};
  (void)argc;
  if (!read_words(&launch, argv + 1)) {
    bool asked = argv[1] != NULL && (is_option(argv[1], "--help") || is_option(argv[1], "-h"));
    fputs(usage, asked ? stdout : stderr);
    return asked ? STATUS_OK : STATUS_BAD_JOB;
  }
  struct arena *arena = arena_new();
  int status = run(arena, &launch);
  arena_free(arena);
  return status;
}
