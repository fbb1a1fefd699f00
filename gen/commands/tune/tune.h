/* Tune: what the commands that measure kernels share. */
#ifndef ACCEL_COMMANDS_TUNE_TUNE_H
#define ACCEL_COMMANDS_TUNE_TUNE_H

#include "gen/commands/generate/compilation.h"
#include "gen/tuning/tuning.h"

/* The table to add to: that of `file`, unless it was measured elsewhere or with other tools than `fresh`, an empty one,
 * says; then `fresh`. */
struct tuning *tune_open(const struct options *options, const char *file, struct tuning *fresh);

/* Writes the table; then says what follows for the job of `compilation`. A status. */
int tune_finish(const struct compilation *compilation, struct tuning *table, const char *file);

/* The matmuls of a program for GPUs, by the algorithms of its library: as its trainer has measured them in the file
 * that --measured names, else on this machine. A status. */
int tune_gemms(const struct options *options, const char *file);

#endif
