/* Sharding: which of the ranks divide what each of them would have whole, and what that does not go with. */
#ifndef ACCEL_SPEC_SHARDING_H
#define ACCEL_SPEC_SHARDING_H

#include "gen/base/diag.h"
#include "gen/spec/job.h"
#include "gen/spec/node.h"

/* The data's ranks as a grid: every one of `shards` has a part of what `replicas` have alike. Ranks that divide
 * sequences have parts, too, as in Accelerate's dp_shard_cp. */
struct data_grid {
  int64_t replicas, shards;
  int64_t stage; /* what is divided: 0 nothing, 1 the optimizer's states, 2 gradients too, 3 weights too */
  int64_t parts; /* of what is divided: shards, times the ranks that divide sequences; 1: nothing is divided */
};

/* What the job's keys say, with what follows for the axes that they leave out. */
struct data_grid data_grid_of(const struct spec_node *job, int64_t ranks);

/* Reports grids that are not the job's ranks, and keys that a division does not go with. */
void sharding_check(const struct spec_node *job, int64_t ranks, struct diagnostics *diags);

#endif
