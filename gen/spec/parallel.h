/* The ranks of a job and the grid that they form. */
#ifndef ACCEL_SPEC_PARALLEL_H
#define ACCEL_SPEC_PARALLEL_H

#include "gen/spec/job.h"
#include "gen/spec/node.h"

/* The ranks of a resolved job: devices.nodes times devices.per_node. */
int64_t parallel_ranks(const struct spec_node *job);

/* Those of them that have batches of their own. */
int64_t parallel_data_ranks(const struct spec_node *job);

/* Checks that the axes of a resolved job make up its ranks, and that its keys work with several. */
void parallel_check(const struct spec_node *job, struct diagnostics *diags);

/* Fills job->devices.ranks, job->devices.timeout and job->parallelism; makes job->data.batch_size that of a rank. */
void parallel_bind(struct job *job);

#endif
