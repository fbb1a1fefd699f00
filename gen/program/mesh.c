#include "gen/program/mesh.h"

#include "gen/program/program.h"

struct axes axes_after_first(struct axes axes) {
  struct axes rest = {.count = axes.count > 0 ? axes.count - 1 : 0};
  for (int i = 0; i < rest.count; i++) rest.items[i] = axes.items[i + 1];
  return rest;
}

bool axes_have(struct axes axes, enum axis axis) {
  for (int i = 0; i < axes.count; i++)
    if (axes.items[i] == axis) return true;
  return false;
}

bool axes_equal(struct axes a, struct axes b) {
  if (a.count != b.count) return false;
  for (int i = 0; i < a.count; i++)
    if (a.items[i] != b.items[i]) return false;
  return true;
}

enum axis axis_sharding(const struct program *program, enum sharded sharded) {
  for (int axis = 0; axis < AXES; axis++)
    if (program->mesh.axes[axis].ranks > 1 && program->mesh.axes[axis].sharded == sharded) return (enum axis)axis;
  return AXES;
}

int64_t mesh_ranks(const struct program *program, enum sharded sharded) {
  return ranks_along(program, axis_sharding(program, sharded));
}

int64_t ranks_along(const struct program *program, enum axis axis) {
  return program->mesh.axes[axis].ranks;
}

struct axes summed_along(const struct program *program, const struct parameter *parameter) {
  const struct program_mesh *mesh = &program->mesh;
  struct axes axes = {0};
  if (mesh->shards != AXES) axes.items[axes.count++] = mesh->shards;
  for (int i = 0; i < mesh->batches.count; i++) {
    const enum axis axis = mesh->batches.items[i];
    const bool others = parameter != NULL && parameter->placement.form == PLACED_EXPERT && parameter->axis == (int)axis;
    if (axis != mesh->shards && !others) axes.items[axes.count++] = axis;
  }
  return axes;
}
