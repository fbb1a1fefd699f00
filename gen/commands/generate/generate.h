/* Generate: a job's program into a file, for the commands that write one. */
#ifndef ACCEL_COMMANDS_GENERATE_GENERATE_H
#define ACCEL_COMMANDS_GENERATE_GENERATE_H

#include "gen/commands/cli/inputs.h"
#include "gen/commands/generate/compilation.h"
#include "gen/commands/generate/manifest.h"

/* A program that is made and not yet written. */
struct generated {
  struct compilation compilation; /* its `second` is the second text */
  const char *text;
  struct inputs inputs;      /* what it was made of, and what it will read */
  struct manifest *manifest; /* what is to be said of it; NULL: nothing was asked */
};

/* A compilation by the command line, whose --program and --dump are looked at. A status. */
int begin_compilation(struct compilation *compilation, const struct options *options);

/* Prints what it has to say. The status that it is given. */
int finish_compilation(const struct compilation *compilation, int status);

/* Makes the program at options->output. `program` is the path that it is to be said to have, which asks for the
 * manifest, with the keys of its lines where options->manifest asks for them; NULL: nothing is asked. A status. */
int generate(const struct options *options, const char *program, struct generated *generated);

/* Writes its texts. False after a message on standard error. */
bool write_generated(const struct generated *generated);

#endif
