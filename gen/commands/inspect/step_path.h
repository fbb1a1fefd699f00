/* Step path: the functions of a program that step reaches, as the audit finds them. */
#ifndef ACCEL_COMMANDS_INSPECT_STEP_PATH_H
#define ACCEL_COMMANDS_INSPECT_STEP_PATH_H

#include "gen/base/diag.h"
#include "gen/commands/cli/options.h"
#include "gen/provenance/compare.h"

/* Fills input->step_functions from a program's text, which is named `file`. False with errors in `diags` where it is no
 * C that compiles. */
bool find_step_functions(const struct options *options, const char *file, const char *text, struct diff_input *input,
                         struct diagnostics *diags);

#endif
