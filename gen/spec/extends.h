/* Extends: a job over the files that it names under `extends`, merged into one document before anything looks at it. */
#ifndef ACCEL_SPEC_EXTENDS_H
#define ACCEL_SPEC_EXTENDS_H

#include "gen/spec/node.h"

/* Files that a document was merged from, in addition to its own. */
struct extended_files {
  const char **items; /* each once, in the order in which they are merged: a later one overrides an earlier one */
  int count, capacity;
};

/* The document without its key `extends`, over what the files of that key say. `file` is the document's own, from whose
 * folder they are named. Groups are merged key by key; any other value replaces what is below it, and null takes it
 * away. Paths that are relative to their file are made relative to `file`. Locations stay those of the files. NULL with
 * errors in `diags`, at the line that names the file or in the file itself. */
const struct spec_node *extends_apply(struct arena *arena, const char *file, const struct spec_node *document,
                                      struct extended_files *files, struct diagnostics *diags);

/* A document over another: groups are merged key by key, any other value of `above` replaces that of `below`, and null
 * takes it away. NULL with an error where a group has too many keys. */
const struct spec_node *extends_merge(struct arena *arena, const struct spec_node *below, const struct spec_node *above,
                                      struct diagnostics *diags);

#endif
