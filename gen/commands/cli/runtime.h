/* Where an emitted program finds its runtime. */
#ifndef ACCEL_COMMANDS_CLI_RUNTIME_H
#define ACCEL_COMMANDS_CLI_RUNTIME_H

#include "gen/commands/cli/options.h"
#include "gen/commands/cli/process.h"

/* What a program is linked with besides the runtime of one rank. */
struct linked {
  bool ranks;          /* the runtime of several */
  bool sqlite;         /* SQLite, for the files of Trackio */
  const char *runtime; /* the runtime, as pkg-config calls it; NULL: that of programs for processors */
};

/* Lets pkg-config look for the runtime next to this command, before all other folders. */
void runtime_path(const struct options *options);

/* Adds the compiler's flags for the runtime, as pkg-config says them for `what` ("--cflags --libs"), looking first next
 * to this command. False after a message on standard error. */
bool runtime_flags(const struct options *options, const char *what, struct linked linked, struct words *flags);

/* Adds the flags with which a program is compiled, as far as they change what its text means: those of the options, and
 * where the runtime's headers are. */
void reading_flags(const struct options *options, struct words *flags);

#endif
