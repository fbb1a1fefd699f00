/* The manifest of a program, from the travel that made it. */
#ifndef ACCEL_COMMANDS_MANIFEST_H
#define ACCEL_COMMANDS_MANIFEST_H

#include "gen/commands/travel.h"
#include "gen/provenance/manifest.h"

/* What there is to say of the program `text`, which lies at options->output. */
struct manifest *describe(const struct travel *travel, const char *text, const struct origins *origins);

/* Writes it beside the program. False once a message stands on standard error. */
bool write_manifest(const struct travel *travel, const char *text, const struct origins *origins);

#endif
