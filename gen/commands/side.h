/* Side: a job, a program or a manifest, as far as it can be compared with another. */
#ifndef ACCEL_COMMANDS_SIDE_H
#define ACCEL_COMMANDS_SIDE_H

#include "gen/base/diag.h"
#include "gen/commands/inputs.h"
#include "gen/commands/options.h"
#include "gen/provenance/compare.h"

/* Each fills a side, and adds what it read beside `file`; false with errors in `diags`. */

/* A job, whose program is made. */
bool side_of_job(const struct options *options, const char *file, struct side *side, struct inputs *inputs,
                 struct diagnostics *diags);

/* A manifest, with the program beside it where that is the one that it describes. */
bool side_of_manifest(const struct options *options, const char *file, struct side *side, struct inputs *inputs,
                      struct diagnostics *diags);

/* A program, with the manifest beside it where that describes it; else its own words of its job and its plan are taken:
 * the table of keys and the first comment. */
bool side_of_program(const struct options *options, const char *file, const char *text, size_t length,
                     struct side *side, struct inputs *inputs, struct diagnostics *diags);

#endif
