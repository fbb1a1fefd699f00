/* The text of the program that is verified. */
#ifndef ACCEL_COMMANDS_VERIFY_TEXT_H
#define ACCEL_COMMANDS_VERIFY_TEXT_H

#include "gen/c/tree.h"
#include "gen/commands/cli/options.h"

/* Reads it; NULL: it is no C that compiles. *plain: all compilers read the same, and it hides nothing from a reader, by
 * what the audit finds. */
const struct tree *verify_text(struct arena *arena, const struct options *options, const char *program, bool *plain);

#endif
