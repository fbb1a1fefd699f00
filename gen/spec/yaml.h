/* YAML: a document's text as a tree of nodes, by libyaml's events. */
#ifndef ACCEL_SPEC_YAML_H
#define ACCEL_SPEC_YAML_H

#include "gen/spec/node.h"
#include "gen/spec/source.h"

/* The tree of the one document of `source`. Plain words follow YAML 1.2's core schema; aliases share their anchor's
 * nodes. NULL when the text is no YAML; a tree with errors in `diags` where it is, but holds duplicate keys, tags
 * outside the core schema or aliases that lead nowhere. */
struct spec_node *yaml_parse(struct arena *arena, const struct spec_source *source, struct diagnostics *diags);

#endif
