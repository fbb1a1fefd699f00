/* A program together with the manifest next to it. */
#ifndef ACCEL_COMMANDS_INSPECT_RECORDED_H
#define ACCEL_COMMANDS_INSPECT_RECORDED_H

#include "gen/base/difference.h"
#include "gen/provenance/manifest.h"

struct recorded {
  const char *path; /* of the program */
  const char *text;
  size_t length;
  struct lines lines;
  struct manifest *manifest;
};

/* Reads both. False with an error in `diags` where one of them cannot be read, or the program is not the one that the
 * manifest describes, byte for byte. */
bool recorded_read(struct arena *arena, const char *program, struct recorded *recorded, struct diagnostics *diags);

#endif
