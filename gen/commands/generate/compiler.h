/* Compiler: an emitted program in C becomes a binary, by the user's compiler. */
#ifndef ACCEL_COMMANDS_GENERATE_COMPILER_H
#define ACCEL_COMMANDS_GENERATE_COMPILER_H

#include "gen/commands/cli/options.h"
#include "gen/commands/cli/runtime.h"
#include "gen/program/processor.h"

/* The compiler's name, and what it gets in addition to the program and the runtime: $CC and $CFLAGS, or what suits the
 * processor. */
const char *compiler_name(void);
const char *compiler_flags(struct arena *arena, const struct processor *processor);

/* What the compiler says of itself, in one line; "unknown" when it says nothing. */
const char *compiler_version(const struct options *options);

/* Compiles `source` for the processor, with the file `hooks` unless that is NULL, to `program`. A terminal shows `what`
 * while that takes (process.h). False after a message on standard error. */
bool compiler_run(const struct options *options, const struct processor *processor, const char *hooks,
                  struct linked linked, const char *source, const char *program, const char *what);

#endif
