#include "gen/plan/graph/mesh.h"

#include "gen/program/target.h"

/* Along the axes of a job: weights whole, gradients partial where ranks have batches or positions of their own. */
static const struct mesh_axis placed[AXES] = {
    [AXIS_DP_REPLICATE] = {.sharded = SHARDED_BATCHES, .gradients = PLACED_PARTIAL},
    [AXIS_DP_SHARD] = {.sharded = SHARDED_BATCHES, .gradients = PLACED_PARTIAL, .states = PLACED_SPLIT},
    [AXIS_CP] = {.sharded = SHARDED_KEYS, .gradients = PLACED_PARTIAL},
    [AXIS_SP] = {.sharded = SHARDED_HEADS, .gradients = PLACED_PARTIAL},
    [AXIS_PP] = {.sharded = SHARDED_LAYERS},
    [AXIS_TP] = {.sharded = SHARDED_TENSORS},
    [AXIS_EP] = {.sharded = SHARDED_EXPERTS, .gradients = PLACED_PARTIAL},
};

static void add(const struct program_mesh *mesh, struct axes *axes, enum axis axis) {
  if (mesh->axes[axis].ranks > 1) axes->items[axes->count++] = axis;
}

void lay_mesh(struct program *program) {
  /* Parts of a tensor first, then tensors, layers, and what is left of them on a rank. */
  static const enum axis inner_to_outer[] = {AXIS_TP, AXIS_EP, AXIS_PP, AXIS_DP_SHARD};
  struct program_mesh *mesh = &program->mesh;
  const int64_t *lengths = program->job->parallelism.axes;
  const int stage = program->job->parallelism.zero_stage;
  const enum axis within = lengths[AXIS_DP_SHARD] > 1 ? AXIS_DP_SHARD : AXIS_DP_REPLICATE;
  for (int axis = 0; axis < AXES; axis++) {
    mesh->axes[axis] = placed[axis];
    mesh->axes[axis].ranks = lengths[axis];
    mesh->axes[axis].within = axis == AXIS_CP || axis == AXIS_SP ? within : AXES;
    if (axis != AXIS_CP && axis != AXIS_SP && placed[axis].gradients == PLACED_PARTIAL)
      add(mesh, &mesh->batches, (enum axis)axis);
  }
  mesh->axes[AXES] = (struct mesh_axis){.ranks = 1, .within = AXES};
  if (stage >= 2) mesh->axes[AXIS_DP_SHARD].gradients = PLACED_SPLIT;
  if (stage >= 3) mesh->axes[AXIS_DP_SHARD].weights = PLACED_SPLIT;
  const enum axis split = lengths[AXIS_DP_SHARD] > 1 ? AXIS_DP_SHARD : AXES;
  mesh->shards = target_devices(program->job) > 1 ? AXES : split;
  mesh->devices = target_devices(program->job) > 1 ? split : AXES;
  for (size_t i = 0; i < sizeof inner_to_outer / sizeof *inner_to_outer; i++)
    add(mesh, &mesh->norms, inner_to_outer[i]);
}
