/* accel-gen audit --regenerate: whether a program and its manifest are what the inputs that the manifest names give. */
#ifndef ACCEL_COMMANDS_INSPECT_REGENERATE_H
#define ACCEL_COMMANDS_INSPECT_REGENERATE_H

#include "gen/commands/cli/options.h"

/* options->argument is a manifest. STATUS_OK: the same bytes; STATUS_CANNOT: not, or the program cannot be made. */
int regenerate(const struct options *options);

#endif
