/* Mesh: the axes along which a program's ranks are ordered, by what they divide, and the placements along each of what
 * the optimizer works on. gen/plan/graph/mesh.h decides it: what is not a key of the job names no axis, but goes
 * through these lists. */
#ifndef ACCEL_PROGRAM_MESH_H
#define ACCEL_PROGRAM_MESH_H

#include <stdbool.h>

#include "gen/ir/graph.h"
#include "gen/spec/job.h"

struct program;

/* Axes in an order. */
struct axes {
  enum axis items[AXES];
  int count;
};

/* All but the first. */
struct axes axes_after_first(struct axes axes);

/* Whether an axis is among them. */
bool axes_have(struct axes axes, enum axis axis);

/* Whether they are the same in the same order. */
bool axes_equal(struct axes a, struct axes b);

/* What is sharded among the ranks along an axis. */
enum sharded {
  SHARDED_BATCHES,
  SHARDED_KEYS,  /* positions, of which attention gathers keys and values */
  SHARDED_HEADS, /* positions, which attention exchanges for heads */
  SHARDED_LAYERS,
  SHARDED_TENSORS,
  SHARDED_EXPERTS
};

/* Placements of a weight that no operation divides, of its gradient while micro-batches add to it, and of the
 * optimizer's states of it; SPLIT is of a flat range. They say what ranks exchange: a partial gradient is added up to
 * what states there are of it, by an all-reduce if they are whole, by a reduce-scatter if they are split; weights that
 * are whole where states are split are gathered after the update, and split ones before each use. */
struct mesh_axis {
  int64_t ranks; /* 1: nothing is along it */
  enum sharded sharded;
  enum placement_form weights, gradients, states;
  enum axis within; /* the axis that counts its ranks too; AXES: none */
};

struct program_mesh {
  struct mesh_axis axes[AXES + 1]; /* the last one is no axis, of one rank */
  struct axes batches;             /* along which gradients and the loss are partial sums, far ranks first */
  struct axes norms; /* along which gradients have norms of their own, in the order in which these add up */
  enum axis shards;  /* along which states are split among processes; AXES: none */
  enum axis devices; /* along which they are split among the devices of a process, which has all; AXES: none */
};

/* The axis along which that is sharded; AXES: there is none. For batches there may be several. */
enum axis axis_sharding(const struct program *program, enum sharded sharded);

/* The ranks along that axis. */
int64_t mesh_ranks(const struct program *program, enum sharded sharded);

/* The ranks along an axis. */
int64_t ranks_along(const struct program *program, enum axis axis);

/* The axes along which a parameter's gradient is added up, in order: first the one along which the sum is split, if
 * there is one. Along that of experts, the gradient of a parameter of theirs is of all batches already, as it receives
 * the rows of all. NULL: one that all ranks have. */
struct axes summed_along(const struct program *program, const struct parameter *parameter);

#endif
