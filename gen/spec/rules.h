/* Rules: what JSON Schema cannot say, comparisons of one key's number with another's, and
 * conflicts whose reason is worth telling. */
#ifndef ACCEL_SPEC_RULES_H
#define ACCEL_SPEC_RULES_H

#include "gen/spec/node.h"

/* Checks a resolved job; each broken rule is one error that names both locations. */
void rules_check(struct arena *arena, const struct spec_node *job, struct diagnostics *diags);

#endif
