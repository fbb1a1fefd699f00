/* Bundle: a job's program with all sources that it is made of, in a folder that a bare machine builds. */
#ifndef ACCEL_COMMANDS_GENERATE_BUNDLE_H
#define ACCEL_COMMANDS_GENERATE_BUNDLE_H

#include "gen/commands/cli/options.h"
#include "gen/program/processor.h"
#include "gen/program/target.h"

/* What building a program takes in addition to the program itself. */
struct needs {
  const char *hooks; /* the job's own C; NULL: none */
  int64_t ranks;
  bool sqlite; /* for the files of Trackio */
  const struct target *target;
  const struct processor *processor;
  const char *name; /* of the program: "trainer", "generator" */
};

/* Those of the options' job, which was found good before. */
struct needs needs_of(const struct options *options);

/* Writes the program, the runtime's sources and build.sh into a folder, which is made where it is missing. A status. */
int bundle_write(const struct options *options, const char *folder);

/* Writes such a folder and builds its program, by its build.sh. False after a message on standard error. */
bool bundle_build(const struct options *options, const char *folder, const char *program);

#endif
