/* Sequence sharding: how ranks along sp and cp shard the values of a graph (gen/plan/graph/positions.h). */
#ifndef ACCEL_PLAN_GRAPH_SEQUENCE_SHARDING_H
#define ACCEL_PLAN_GRAPH_SEQUENCE_SHARDING_H

#include "gen/program/program.h"

/* The parts of a value. `positions`: the placement of its positions, among ranks along both axes. `heads`: 1 + the
 * dimension that ranks along sp divide, by which positions are sharded along cp alone; 0: none. */
struct sequence_sharding {
  struct placement positions;
  int heads;
};

/* What a node's operands must be, its inputs and then output 0, and as what later nodes take output 0 (`back`). */
struct placed {
  struct sequence_sharding *operands, back;
  bool gathers; /* another operation replaces it, over a rank's positions and those of all */
};

/* An axis of the mesh. */
struct along {
  enum axis axis;
  int64_t ranks; /* 1: it divides nothing */
};

/* Parts of values are found forward from the entry's inputs; a value is whole until something that it is made of is
 * not. */
struct positions {
  struct program *program;
  struct builder *builder;
  struct diagnostics *diags;
  struct along keys;  /* ranks that gather keys and values */
  struct along heads; /* ranks that exchange positions for heads: each has a range of what it has along `keys` */
  int64_t ranks;      /* along both */
  struct sequence_sharding *values; /* by value id */
  bool *given;                      /* by value id: each rank has the whole, of which an operation may take its part */
  struct placed *nodes;             /* by node id, in the end */
  struct shape tokens;              /* of the entry's inputs that have positions */
};

/* All tables, with nothing sharded. */
void open_divided(struct positions *positions);

/* The entry of `values`. */
struct sequence_sharding *sharding_of(const struct positions *positions, const struct value *value);

/* A value as its uses find it: whole where it is given. */
struct sequence_sharding sharding_at_hand(const struct positions *positions, const struct value *value);

/* Whether a rank has the same part. */
bool sharding_equal(const struct positions *positions, struct sequence_sharding a, struct sequence_sharding b);

/* Whether a rank has less than the whole, or what is of its own positions alone. */
bool is_sharded_at_all(struct sequence_sharding sharding);

/* A rank's part of what has the tokens' shape. */
struct sequence_sharding sharding_of_input(const struct positions *positions);

/* What a call takes as its input `input`, as its region has it, which knows orders of rows (PLACED_SORTED) by the first
 * of its inputs that is sorted so. */
struct sequence_sharding sharding_entering(const struct positions *positions, const struct node *node, int input);

/* Fills `values` and `nodes` from the entry's inputs on. */
void spread_divided(const struct positions *positions);

/* Sets placed->operands, back and gathers of a node that is no call, from the parts of its inputs. False: there are
 * none. */
bool place_sharded(const struct positions *positions, const struct node *node, struct placed *placed);

#endif
