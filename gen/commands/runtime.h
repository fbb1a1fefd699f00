/* Where an emitted program finds its runtime. */
#ifndef ACCEL_COMMANDS_RUNTIME_H
#define ACCEL_COMMANDS_RUNTIME_H

#include "gen/commands/options.h"
#include "gen/commands/process.h"

/* Adds the compiler's flags for the runtime, as pkg-config says them for `what` ("--cflags --libs"), looking first
 * beside this command. False once a message stands on standard error. */
bool runtime_flags(const struct options *options, const char *what, struct words *flags);

#endif
