/* Trial: a small job that is generated, built and run on the available machines, in a folder of its own. Private to
 * gen/commands/test. */
#ifndef ACCEL_COMMANDS_TEST_TRIAL_H
#define ACCEL_COMMANDS_TEST_TRIAL_H

#include "gen/commands/cli/options.h"
#include "gen/commands/cli/process.h"

struct trial {
  const struct options *options;
  struct arena *arena;
  const char *self;   /* this command */
  const char *folder; /* which is the working folder */
  int ranks, nodes;
  bool gpu, compares; /* compares: a program of one process is built, too */
  int failed, passed;
  const char *log; /* of the last command that was run; NULL: nothing of it is of interest */
};

/* Writes the model, its hooks and data, and the jobs ranks.yaml, one.yaml (of one process) and alone.yaml (of all
 * ranks, without hooks). False after a message on standard error. */
bool trial_write(const struct trial *trial);

/* Runs a command with its output in NAME.log, and passes on signals that ask to end. Whether it ended with 0. */
bool trial_run(struct trial *trial, const char *name, const struct words *words);

/* The signal that asked to end; 0: none. */
int trial_signal(void);

/* This command with words after it, whose own temporary files are in the folder, too: nothing is left where a signal
 * ends it. */
struct words trial_self(const struct trial *trial, const char *words);

/* The numbers that a run's metrics.jsonl has for a key, by steps from 1: how many; steps that it lacks are NAN. */
int trial_numbers(struct arena *arena, const char *file, const char *key, double *numbers, int most);

/* The last line of a text file; "" where there is none. */
const char *trial_last_line(struct arena *arena, const char *file);

/* Prints the end of the log of the last command, indented. */
void trial_print_log(const struct trial *trial);

#endif
