/* Shard: which elements of the weights each rank has the optimizer's states of, and updates, where states are split.
 *
 * Neighbours that the update treats alike and whose gradients are complete together are a flat range, and every flat
 * range is cut into as many shards as there are ranks: alike ones of whole lines of memory, the last one with what is
 * left. So the first element of a rank's shard is its rank times a constant, and no shard reaches beyond its flat
 * range. In a pipeline a flat range is of one stage, and what two stages use is a flat range of each. */
#ifndef ACCEL_PLAN_RANKS_SHARD_H
#define ACCEL_PLAN_RANKS_SHARD_H

#include "gen/program/program.h"

/* Whether a weight can be one flat range with those that were added last: next to them among the weights as among the
 * gradients, and updated by the same numbers. */
bool shard_accepts(const struct program *program, const struct weight *weight);

/* Makes a weight the first one of a flat range in program->optimizer.flat_ranges; or one more of the last. */
void shard_begin(struct program *program, const struct weight *weight);
void shard_extend(struct program *program, const struct weight *weight);

/* Fills program->optimizer.flat_ranges with all weights of program->optimizer.parts, in the order of their memory, and
 * cuts them. Those of a pipeline are stage by stage, of each those of no unit of FSDP first. */
void shard_all(struct program *program);

/* Cuts all flat ranges: their shards, where each begins among what is a rank's own, and the length of that. A rank of a
 * stage of a pipeline has those of its stage alone. */
void shard_cut(struct program *program);

/* Elements of the flat ranges of a rank along the axis of layers: of units of FSDP, and of all else. */
struct shard_elements {
  int64_t units, others;
};
struct shard_elements shard_elements(const struct program *program, int rank);

/* A rank's part of the sum of a flat range in the order of a tree. */
struct collective shard_scattered_by_tree(const struct program *program, const struct flat_range *range,
                                          const char *what);

/* The sum of a rank's part of a flat range over those along another axis, which have the same part. */
struct collective shard_replicated(const struct program *program, const struct flat_range *range,
                                   const struct collective *scattered, enum axis axis);

/* Adds what makes shards whole again after the update: the all-gathers of what is of no layer that comes for itself.
 */
void shard_gather(struct program *program);

/* What makes a layer's flat range whole, once in each micro-batch. */
struct collective shard_layer_gather(const struct program *program, const struct flat_range *range);

#endif
