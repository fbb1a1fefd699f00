/* Resolve: a valid document with every default filled in, in the schema's order, and numbers of the schema's types. */
#ifndef ACCEL_SPEC_RESOLVE_H
#define ACCEL_SPEC_RESOLVE_H

#include <jansson.h>

#include "gen/spec/node.h"

/* The resolved tree of a document that schema_validate has passed. A key that a condition forbids stays away, so the
 * resolved job is valid itself. A group's location is its key; a default at the nearest enclosing group's key. */
struct spec_node *spec_resolve(struct arena *arena, const json_t *root, const struct spec_node *document);

#endif
