/* Variations: what a program would be if one key of its job had another value. A line of the program has the keys for
 * which it would be another line: the word of an experiment, not of who wrote the generator. */
#ifndef ACCEL_COMMANDS_GENERATE_VARIATIONS_H
#define ACCEL_COMMANDS_GENERATE_VARIATIONS_H

#include "gen/commands/generate/compilation.h"
#include "gen/provenance/manifest.h"

/* Fills manifest->keys, and the keys of manifest->lines, which are there: for each key of the job the program is made
 * again with each of its alternatives. `compilation` has made the program `text`. The same of manifest->second. */
void find_keys(const struct compilation *compilation, const char *text, struct manifest *manifest);

#endif
