/* The manifest of a program, from the compilation that made it, and the statements that rest on it. */
#ifndef ACCEL_COMMANDS_GENERATE_MANIFEST_H
#define ACCEL_COMMANDS_GENERATE_MANIFEST_H

#include "gen/commands/cli/inputs.h"
#include "gen/commands/generate/compilation.h"
#include "gen/statements/statement.h"

/* What there is to say of the program `text`, which is at `program` or was; all but the keys of its lines, which
 * variations.h finds. With compilation->second_origins also what there is to say of its second text. */
struct manifest *describe(const struct compilation *compilation, const char *program, const char *text,
                          const struct origins *origins);

/* Writes the manifest next to its program, and that of its second text next to that. False after a message on standard
 * error. */
bool write_manifest(const struct inputs *inputs, const char *program, const struct manifest *manifest);

/* Writes FILE.intoto.json and FILE.cdx.json, what is to be said of the file, which made->name is to name. */
bool write_statements(const struct inputs *inputs, const char *file, const struct made *made);

/* Whether these files can be written and would be none of the inputs; false after a message on standard error. */
bool spare_manifest(const struct inputs *inputs, const char *program, const struct manifest *manifest);
bool spare_statements(const struct inputs *inputs, const char *file);

#endif
