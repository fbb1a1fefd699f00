/* Diff input: a job, a program or a manifest, as far as it can be compared with another. */
#ifndef ACCEL_COMMANDS_INSPECT_DIFF_INPUT_H
#define ACCEL_COMMANDS_INSPECT_DIFF_INPUT_H

#include "gen/base/diag.h"
#include "gen/commands/cli/inputs.h"
#include "gen/commands/cli/options.h"
#include "gen/provenance/compare.h"

/* Each fills a diff_input, and adds what it read in addition to `file`; false with errors in `diags`. */

/* A job, whose program is made. */
bool diff_input_from_job(const struct options *options, const char *file, struct diff_input *input,
                         struct inputs *inputs, struct diagnostics *diags);

/* A manifest, with the program next to it where that is the one that it describes. */
bool diff_input_from_manifest(const struct options *options, const char *file, struct diff_input *input,
                              struct inputs *inputs, struct diagnostics *diags);

/* A program, with the manifest next to it where that describes it; else its own words of its job and its plan are
 * taken: the table of keys and the first comment. */
bool diff_input_from_program(const struct options *options, const char *file, const char *text, size_t length,
                             struct diff_input *input, struct inputs *inputs, struct diagnostics *diags);

#endif
