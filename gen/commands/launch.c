/* accel-gen launch: starts the processes of a job's program, by what is there to start them. */
#include "gen/commands/launch.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gen/commands/commands.h"

static const char usage[] =
    "usage: accel-gen launch [--by mpirun|srun|env] [--hosts A,B,...] [--set KEY=VALUE]... [--print] JOB PROGRAM\n"
    "                        [FLAG]...\n"
    "  Prints the command that starts PROGRAM, built of JOB, with as many processes as the job has ranks, and\n"
    "  runs it; the FLAGs are PROGRAM's.\n"
    "  --by NAME      what starts them; without it env where RANK, WORLD_SIZE and MASTER_ADDR are set, srun inside of\n"
    "                 a job of Slurm, mpirun elsewhere. env: this command is started once a rank, or once a machine,\n"
    "                 by torchrun or an operator of Kubernetes, and the one of RANK 0 runs mpirun across all\n"
    "  --hosts LIST   the machines for mpirun, as many as devices.nodes\n"
    "  --set K=VALUE  a key of JOB in the place of what stands there, as when PROGRAM was built\n"
    "  --print        print the command, and that is all\n";

static const char *const starters[STARTERS] = {"mpirun", "srun", "env"};

static bool is_option(const char *word, const char *name) {
  return word != NULL && strcmp(word, name) == 0;
}

static enum starter what_is_there(void) {
  if (launch_is_convention()) return BY_ENV;
  return getenv("SLURM_JOB_ID") != NULL ? BY_SRUN : BY_MPIRUN;
}

static bool add_override(struct arena *arena, struct launch *launch, const char *text) {
  const char *equals = strchr(text, '=');
  if (equals == NULL || equals == text) {
    fprintf(stderr, "accel-gen launch: --set needs KEY=VALUE, not %s\n", text);
    return false;
  }
  launch->overrides =
      arena_grow(arena, launch->overrides, launch->n_overrides, &launch->overrides_capacity, sizeof *launch->overrides);
  launch->overrides[launch->n_overrides++] =
      (struct job_override){arena_copy(arena, text, (size_t)(equals - text)), equals + 1};
  return true;
}

static bool read_words(struct arena *arena, struct launch *launch, char **words) {
  launch->by = what_is_there();
  for (; *words != NULL && launch->program == NULL; words++) {
    if ((*words)[0] != '-')
      *(launch->job == NULL ? &launch->job : &launch->program) = *words;
    else if (is_option(*words, "--print"))
      launch->print = true;
    else if (is_option(*words, "--by") && words[1] != NULL)
      for (launch->by = 0, words++; launch->by < STARTERS && strcmp(*words, starters[launch->by]) != 0;) launch->by++;
    else if (is_option(*words, "--hosts") && words[1] != NULL)
      launch->hosts = *++words;
    else if (!is_option(*words, "--set") || words[1] == NULL || !add_override(arena, launch, *++words))
      return false;
  }
  launch->flags = words;
  return launch->program != NULL && launch->by < STARTERS;
}

/* A machine's name once for all its processes: "a:4,b:4". */
static const char *with_ranks(struct arena *arena, const char *hosts, int64_t each) {
  const char *text = "";
  for (const char *at = hosts; *at != '\0';) {
    size_t length = strcspn(at, ",");
    text = arena_printf(arena, "%s%s%.*s:%lld", text, *text != '\0' ? "," : "", (int)length, at, (long long)each);
    at += length + (at[length] == ',');
  }
  return text;
}

/* One process needs nobody to start it, nor do those that somebody has started. */
static struct words alone(const struct words *command, int program) {
  struct words words = words_in(command->arena);
  for (int i = program; i < command->count; i++) words_add(&words, command->items[i]);
  return words;
}

static struct words command_of(struct arena *arena, const struct launch *launch, const struct job *job, bool started) {
  int64_t each = job->devices.ranks / job->devices.nodes;
  const char *hosts = launch->hosts != NULL ? with_ranks(arena, launch->hosts, each) : NULL;
  struct words command =
      launch->by == BY_SRUN ? launch_by_srun(arena, launch, job) : launch_by_mpirun(arena, launch, job, hosts);
  int flags = 0;
  while (launch->flags[flags] != NULL) flags++;
  return job->devices.ranks == 1 || started ? alone(&command, command.count - 1 - flags) : command;
}

/* Slurm's own signals reach the ranks through srun; those to mpirun are watched for. */
static int run(struct arena *arena, const struct launch *launch) {
  struct diagnostics diags = diagnostics_in(arena);
  const struct job *job = job_read(arena, launch->job, launch->overrides, launch->n_overrides, &diags);
  if (job == NULL) {
    diag_print(&diags, stderr, false);
    return STATUS_BAD_JOB;
  }
  bool meets = job->devices.kind != DEVICE_CPU; /* a program of GPUs reads the convention itself */
  if (launch->by == BY_ENV && !meets && !launch->print) return launch_by_env(arena, launch, job);
  struct words command = command_of(arena, launch, job, launch->by == BY_ENV && meets);
  printf("%s\n", words_text(&command));
  fflush(stdout);
  if (launch->print) return STATUS_OK;
  if (launch->by == BY_MPIRUN && job->devices.ranks > 1) {
    int status = launch_run(&command, job->checkpoint.saves_on_signal, NULL);
    launch_explain(status, job, launch->hosts);
    return status;
  }
  execvp(command.items[0], command.items);
  fprintf(stderr, "accel-gen launch: %s: %s\n", command.items[0], strerror(errno));
  return STATUS_CANNOT;
}

int command_launch(int argc, char **argv) {
  struct launch launch = {0};
  if (argc > 4 && is_option(argv[1], "--agent")) return launch_agent(argv[2], argv + 3);
  struct arena *arena = arena_new();
  if (!read_words(arena, &launch, argv + 1)) {
    bool asked = argv[1] != NULL && (is_option(argv[1], "--help") || is_option(argv[1], "-h"));
    fputs(usage, asked ? stdout : stderr);
    arena_free(arena);
    return asked ? STATUS_OK : STATUS_BAD_JOB;
  }
  int status = run(arena, &launch);
  arena_free(arena);
  return status;
}
