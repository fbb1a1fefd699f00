/* Read: a configuration as a tree of values: YAML, JSON (which YAML 1.2 contains), or assignments in Python. */
#ifndef ACCEL_IMPORT_READ_H
#define ACCEL_IMPORT_READ_H

#include "gen/base/diag.h"
#include "gen/spec/node.h"

/* The map of a file's keys. NULL with an error in `diags`. */
const struct spec_node *import_read(struct arena *arena, const char *path, struct diagnostics *diags);

/* The assignments of a Python text as a map; the last one of a name counts. Nothing is run: what is read are literals,
 * and sums, differences, products and quotients of numbers and of names assigned before; any other expression is a
 * value that is `broken`. `text` is referenced. NULL with an error at anything else than assignments of a line,
 * imports, comments and a documentation string. */
struct spec_node *python_read(struct arena *arena, const char *file, const char *text, struct diagnostics *diags);

#endif
