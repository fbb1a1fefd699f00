/* Hot: the functions of a program's hot loop, as the audit finds them. */
#ifndef ACCEL_COMMANDS_HOT_H
#define ACCEL_COMMANDS_HOT_H

#include "gen/base/diag.h"
#include "gen/commands/options.h"
#include "gen/provenance/compare.h"

/* Fills side->hot from a program's text, which is named `file`. False with errors in `diags` where it is no C that
 * compiles. */
bool find_hot(const struct options *options, const char *file, const char *text, struct side *side,
              struct diagnostics *diags);

#endif
