/* Generate: a job's program into a file, for the commands that write one. */
#ifndef ACCEL_COMMANDS_GENERATE_H
#define ACCEL_COMMANDS_GENERATE_H

#include "gen/commands/manifest.h"

/* Writes the program to options->output. `program` is where it is to be said to lie, and *manifest gets what is to be
 * said of it, with the keys of its lines where options->manifest asks for them; NULL: nothing is asked. A status. */
int generate(const struct options *options, const char *program, struct manifest **manifest);

#endif
