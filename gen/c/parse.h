/* Parsing: runs libclang over a C source and gives its syntax tree. */
#ifndef ACCEL_C_PARSE_H
#define ACCEL_C_PARSE_H

#include "gen/c/tree.h"

/* A header that is in memory: found under <...> before any other, and named so in messages. */
struct header {
  const char *name; /* "accel/model.h" */
  const char *text;
};

/* What to read, and as what. */
struct parse_request {
  const char *file;         /* as the user named it */
  const char *text;         /* its content; NULL: to be read */
  const char *const *flags; /* as a compiler takes them: "-std=c17", "-I", "DIR" */
  int n_flags;
  const struct header *headers;
  int n_headers;
  bool is_device; /* device code: the part of C++ that kernels are written in */
  bool outline;   /* declarations alone, whatever the errors: functions have no bodies */
  bool tokens;    /* tree->written and tree->skipped too */
  bool digest;    /* tree->digest too */
};

/* Reads a source. NULL with an error in diags when libclang gives up. A tree whose messages hold an error has nothing
 * but the messages, unless an outline was requested. Texts that messages point to are made known to diags. */
struct tree *tree_parse(struct arena *arena, const struct parse_request *request, struct diagnostics *diags);

/* Whether the compiler found errors. */
bool tree_has_errors(const struct tree *tree);

#endif
