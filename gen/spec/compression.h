/* Compression: gradients that are sent in 16 bits, or as factors of matrices (parallelism.ddp.comm_hook). */
#ifndef ACCEL_SPEC_COMPRESSION_H
#define ACCEL_SPEC_COMPRESSION_H

#include "gen/spec/job.h"
#include "gen/spec/node.h"

/* Checks the keys of parallelism.ddp.comm_state_option against each other and the hook, and what goes with
 * hooks.on_bucket. */
void compression_check(const struct spec_node *job, struct diagnostics *diags);

/* Fills job->parallelism.wire, power_sgd and by_hook, after job->devices.ranks and the axes. */
void compression_bind(struct job *job);

#endif
