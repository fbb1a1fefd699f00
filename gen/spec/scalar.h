/* Scalar: what a plain YAML word means, by the core schema of YAML 1.2 (section 10.3.2).
 *
 * There, unlike in YAML 1.1, `no`, `on` and `1_000` are strings and 010 is ten. */
#ifndef ACCEL_SPEC_SCALAR_H
#define ACCEL_SPEC_SCALAR_H

#include "gen/spec/node.h"

/* Sets kind, integer, wide and real of a scalar from its text, as a plain (unquoted) word. */
void scalar_resolve(struct spec_node *node);

#endif
