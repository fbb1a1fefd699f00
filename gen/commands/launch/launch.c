/* accel-gen launch: starts the processes of a job's program, by what is there to start them. */
#include "gen/commands/launch/launch.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gen/commands/cli/commands.h"
#include "gen/commands/launch/engine.h"
#include "gen/program/target.h"
#include "runtime/base/terminal.h"

static const char *const starters[STARTERS] = {"mpirun", "srun", "env"};

static enum starter what_is_there(void) {
  if (launch_is_convention()) return BY_ENV;
  return getenv("SLURM_JOB_ID") != NULL ? BY_SRUN : BY_MPIRUN;
}

static enum starter starter_of(const char *name) {
  enum starter by = 0;
  if (name == NULL) return what_is_there();
  while (strcmp(name, starters[by]) != 0) by++; /* the table of options has no other names */
  return by;
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

static struct words command_of(struct arena *arena, const struct launch *launch, const struct launched *ranks,
                               bool started) {
  int64_t each = ranks->count / ranks->nodes;
  const char *hosts = launch->hosts != NULL ? with_ranks(arena, launch->hosts, each) : NULL;
  struct words command =
      launch->by == BY_SRUN ? launch_by_srun(arena, launch, ranks) : launch_by_mpirun(arena, launch, ranks, hosts);
  int flags = 0;
  while (launch->flags[flags] != NULL) flags++;
  return ranks->count == 1 || started ? alone(&command, command.count - 1 - flags) : command;
}

static struct launched launched_of_job(const struct job *job) {
  return (struct launched){.count = target_processes(job),
                           .nodes = job->devices.nodes,
                           .timeout = job->devices.timeout,
                           .saves_on_signal = job->checkpoint.saves_on_signal,
                           .meets_by_environment = target_of(job)->ranks.meet_by_environment};
}

/* Slurm's own signals reach the ranks through srun; those to mpirun are watched for. */
static int start(struct arena *arena, const struct launch *launch, const struct launched *ranks) {
  bool meets = ranks->meets_by_environment;
  if (launch->by == BY_ENV && !meets && !launch->print) return launch_by_env(arena, launch, ranks);
  struct words command = command_of(arena, launch, ranks, launch->by == BY_ENV && meets);
  words_print(stdout, &command);
  fflush(stdout);
  if (launch->print) return STATUS_OK;
  if (launch->by == BY_MPIRUN && ranks->count > 1) {
    int status = launch_run(&command, ranks->saves_on_signal, NULL);
    launch_explain(status, ranks, launch->hosts);
    return status;
  }
  execvp(command.items[0], command.items);
  rt_print(stderr, "accel-gen launch: %s: %s\n", command.items[0], strerror(errno));
  return STATUS_CANNOT;
}

static int run_by_job(const struct options *options, const struct launch *launch) {
  struct diagnostics diags = diagnostics_in(options->arena);
  const struct job *job = job_read(options->arena, launch->job, options->overrides, options->n_overrides, &diags);
  if (job == NULL) {
    diag_print(&diags, stderr, options->colour);
    return STATUS_BAD_JOB;
  }
  struct launched ranks = launched_of_job(job);
  if (options->n_overrides == 0) setenv("ACCEL_JOB", launch->job, 1); /* for the program's last lines */
  if (options->write != NULL) return launch_write(options, launch, job, &ranks);
  return start(options->arena, launch, &ranks);
}

static int run_by_program(const struct options *options, const struct launch *launch) {
  struct launched ranks;
  if (options->n_overrides > 0 || options->write != NULL) {
    options_refuse(options, options->write != NULL ? "--write" : "--set", " needs the job's file before the program");
    return STATUS_BAD_JOB;
  }
  if (!launched_of_program(options->arena, launch, &ranks)) return STATUS_CANNOT;
  return start(options->arena, launch, &ranks);
}

int command_launch(const struct options *options) {
  launch_take_sagemaker();
  bool by_itself = options->n_arguments == 1;
  const struct launch launch = {.by = starter_of(options->by),
                                .hosts = options->hosts,
                                .job = by_itself ? NULL : options->argument,
                                .program = by_itself ? options->argument : options->second,
                                .print = options->print,
                                .flags = options->rest};
  return by_itself ? run_by_program(options, &launch) : run_by_job(options, &launch);
}
