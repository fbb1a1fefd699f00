/* Override: --set key=value, merged into the document before anything looks at it. */
#ifndef ACCEL_SPEC_OVERRIDE_H
#define ACCEL_SPEC_OVERRIDE_H

#include "gen/spec/job.h"
#include "gen/spec/node.h"

/* The document with the value set, groups on the way made where they are missing. `document` is not changed; it comes
 * back as it is, with an error in `diags`, when the override cannot be read. Locations in it are "--set key=value". */
const struct spec_node *override_apply(struct arena *arena, const struct spec_node *document,
                                       const struct job_override *override, struct diagnostics *diags);

#endif
