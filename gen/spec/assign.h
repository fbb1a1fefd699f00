/* Assign: a document with a value at a dotted key. */
#ifndef ACCEL_SPEC_ASSIGN_H
#define ACCEL_SPEC_ASSIGN_H

#include <jansson.h>

#include "gen/spec/node.h"

/* A copy of the group `document` with `value` at the dotted key, and with the groups on the way that are missing.
 * `document` is not changed. NULL, with an error in `diags`, where something else than a group is on the way.
 *
 * With the document's `schema`, a number on the way is the index of a list's element, at most the one after the last;
 * and the rest of a key that the schema does not list, as those of model.config, is one word with its dots. With NULL
 * every word is a key. */
struct spec_node *document_assign(struct arena *arena, const json_t *schema, const struct spec_node *document,
                                  const char *key, struct spec_node *value, struct diagnostics *diags);

#endif
