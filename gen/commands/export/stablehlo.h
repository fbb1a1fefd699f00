/* A job as a module of StableHLO. */
#ifndef ACCEL_COMMANDS_EXPORT_STABLEHLO_H
#define ACCEL_COMMANDS_EXPORT_STABLEHLO_H

#include "gen/commands/cli/options.h"

/* Writes the loss and the gradients of the job options->argument to options->output, and with options->compile compiles
 * them. Prints what is wrong; the command's status. */
int stablehlo_write(const struct options *options);

#endif
