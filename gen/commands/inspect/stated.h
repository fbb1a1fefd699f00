/* The job that a program or a checkpoint states, where there is no job file. */
#ifndef ACCEL_COMMANDS_INSPECT_STATED_H
#define ACCEL_COMMANDS_INSPECT_STATED_H

#include "gen/commands/cli/options.h"
#include "gen/provenance/program_words.h"
#include "gen/spec/restore.h"

/* The keys of a program's table. */
struct stated_keys stated_in_program(struct arena *arena, const struct program_job *job);

/* Whether a file is a program or the folder of a checkpoint. */
bool states_job(const char *file);

/* The job of a program or of a checkpoint with every default filled in. NULL with an error where it states none, or
 * leaves out defaults that this version does not have. */
const struct job *read_stated_job(const struct options *options, const char *file, struct diagnostics *diags);

#endif
