/* The axes of the mesh that a job's ranks form. */
#ifndef ACCEL_SPEC_MESH_H
#define ACCEL_SPEC_MESH_H

#include "gen/base/diag.h"
#include "gen/spec/choices.h"
#include "gen/spec/node.h"

/* The ranks along an axis of a resolved job, as it gives them; 1 where it does not. */
int64_t axis_length(const struct spec_node *job, enum axis axis);

/* Checks that the axes divide the ranks of a resolved job, and that its keys and axes go together. */
void mesh_check(const struct spec_node *job, struct diagnostics *diags);

#endif
