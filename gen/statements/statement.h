/* Statements about a program for those who check what they are given: an in-toto statement with SLSA's provenance, and
 * a CycloneDX bill of materials. Like a manifest they hold no time and no absolute path. */
#ifndef ACCEL_STATEMENTS_STATEMENT_H
#define ACCEL_STATEMENTS_STATEMENT_H

#include "gen/provenance/manifest.h"

/* What was made, and of what. */
struct made {
  const struct manifest *manifest;
  const char *name, *sha256; /* of the file that the statement is about: the program's C, or the program */
  const char *compiler;      /* of a compiled one: what the compiler says of its version, and its command; else NULL */
  const char *command;
};

/* Why this build cannot make them, as a message; NULL: it can. */
const char *statements_missing(struct arena *arena);

/* An in-toto statement, version 1, with SLSA provenance, version 1, as JSON text. */
const char *statement_text(struct arena *arena, const struct made *made);

/* A software bill of materials (SBOM), CycloneDX 1.6, as JSON text. */
const char *sbom_text(struct arena *arena, const struct made *made);

#endif
