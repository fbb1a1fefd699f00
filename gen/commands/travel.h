/* Travel: from a job's file to a program, stage by stage, for the commands that need it. */
#ifndef ACCEL_COMMANDS_TRAVEL_H
#define ACCEL_COMMANDS_TRAVEL_H

#include "gen/commands/options.h"
#include "gen/plan/program.h"

struct tree;

struct travel {
  const struct options *options;
  struct arena *arena;
  struct diagnostics diags;
  enum program_kind kind;
  struct job *job;
  struct tree *model;
  struct program *program;
  const char *dumped; /* the IR behind options->dump */
};

/* Reads the job, and plans as often as it takes to find the numbers that it leaves open. A status; STATUS_OK leaves
 * travel->job set. The caller has set options, arena, diags and kind. */
int travel_to_job(struct travel *travel);

/* The same, and plans the job: STATUS_OK leaves travel->program set. */
int travel_to_program(struct travel *travel);

#endif
