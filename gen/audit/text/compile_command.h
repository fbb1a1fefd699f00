/* The command by which a program is compiled: whether the compiler gets the text that the audit reads, and nothing else
 * that changes what it means. */
#ifndef ACCEL_AUDIT_TEXT_COMPILE_COMMAND_H
#define ACCEL_AUDIT_TEXT_COMPILE_COMMAND_H

#include "gen/audit/program/claim.h"
#include "gen/audit/program/options.h"

/* The claim plain-command, about the command in the program's first comment ("Build: ...") and those of
 * options->commands. There is no such claim where there is no command. */
void compile_command_check(struct audit *audit, const struct audit_options *options);

/* The command in the first comment of the program ("Build: ..."), up to the comment's end, and where it begins. NULL:
 * there is none. */
const char *compile_command_stated(const struct audit *audit, struct location *where);

/* How a flag of a compiler changes the program, human-readable: "defines a macro". NULL: it is not known to. */
const char *compile_command_change(const char *word);

#endif
