/* Options: the command line of accel-gen, read once and handed to the command. */
#ifndef ACCEL_COMMANDS_OPTIONS_H
#define ACCEL_COMMANDS_OPTIONS_H

#include <stdbool.h>

#include "gen/base/arena.h"
#include "gen/plan/ranks/network.h"
#include "gen/spec/job.h"

/* Exit statuses of every command. */
enum status { STATUS_OK = 0, STATUS_CANNOT = 1, STATUS_BAD_JOB = 2 };

struct options {
  struct arena *arena;            /* of the whole run */
  const struct command *commands; /* all of them, ending with a NULL name */
  const char *binary;             /* the folder of the command itself; NULL when the system does not tell */
  const char *argument; /* the job file, the program of `audit`, the line of `explain`, the topic of `help`; NULL when
                           absent */

  const char *second; /* behind the argument, of a command that takes two */

  const char *config;    /* --config K=V,...: of the model of `model check`; NULL: none */
  const char *output;    /* -o FILE; NULL when absent */
  const char *program;   /* --program: a kind of program, "train" by default */
  const char *templates; /* --templates DIR in the place of the embedded ones; NULL: embedded */
  const char *tuning;    /* --tuning FILE, which is an override, too; NULL: none */
  const char *measured;  /* --measured FILE: what a trainer for GPUs has measured elsewhere; NULL: none */
  int rounds;            /* --rounds N of a measurement; 3 */
  const char *dump;      /* --dump PASS: print the IR behind it; NULL: none */
  bool resolved;         /* --resolved */
  bool json;             /* --json */
  bool verbose;          /* -v */
  bool manifest;         /* --manifest: beside the program */
  bool regenerate;       /* --regenerate: the argument of `audit` is a manifest, whose program is made again */
  const char *bundle;    /* --bundle DIR: a folder of sources in the place of a program; NULL: a program */
  bool provenance;       /* --provenance: statements beside the program */
  const char *key;       /* --key KEY of an explanation; NULL: none */
  bool colour;           /* colours in messages: --color, NO_COLOR, and whether standard error is a terminal */

  const char *format;    /* --format of an audit: "text" (default), "json", "sarif", "junit" or "html" */
  const char *fail_on;   /* --fail-on: "unproved" (default: broken too), "broken" or "never" */
  const char *object;    /* --object FILE: the audited program's object code; NULL: none */
  const char *root;      /* --root NAME: the hot loop's function; NULL: found */
  const char *march;     /* --march NAME: the processor that an audited program is compiled for; "native" (default) */
  const char **includes; /* -I DIR, in order */
  int n_includes;

  bool predicts;          /* --nodes, --latency, --bandwidth or --step: what exchange takes is predicted */
  struct network network; /* over which */

  struct job_override *overrides; /* --set KEY=VALUE, in order */
  int n_overrides;
};

/* A command and the options that it takes. */
struct command {
  const char *name;     /* "" for the main form: a job file without a command word */
  const char *synopsis; /* behind "accel-gen " */
  const char *summary;  /* one line */
  const char *accepts;  /* the option names that it takes, each between spaces: " -o --set " */
  bool needs_output;    /* -o must be given, unless a pass is dumped */
  const char *argument; /* what must be given: "a job file"; NULL: nothing */
  const char *second;   /* what must be given behind it; NULL: nothing can be */
  int (*run)(const struct options *options);
  int (*run_words)(int argc, char **argv); /* in the place of run: reads its own words, argv[0] being its name */
};

/* The command that a word names; NULL when there is none. */
const struct command *command_find(const struct options *options, const char *name);

/* Reads argv for its command, one of options->commands, into *options. The command, or NULL once a usage message stands
 * on standard error;
 * --help and --version are answered by the `help` and `version` commands that they name. */
const struct command *options_read(struct options *options, int argc, char **argv);

#endif
