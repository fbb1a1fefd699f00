/* Requires: the versions of accel-gen that a job asks for. */
#ifndef ACCEL_SPEC_REQUIRES_H
#define ACCEL_SPEC_REQUIRES_H

#include "gen/base/diag.h"
#include "gen/spec/node.h"

/* Whether the installed version is one that the document's key `requires` asks for; a document without it takes any. It
 * is asked before anything else is: what another version reads need not mean the same to this one. False after an
 * error. */
bool requires_is_met(struct arena *arena, const struct spec_node *document, struct diagnostics *diags);

#endif
