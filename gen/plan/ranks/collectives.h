/* Collectives: what ranks do together in a step, from how the job lays tensors on its grid of ranks. This is the only
 * location that says which collective runs when. */
#ifndef ACCEL_PLAN_RANKS_COLLECTIVES_H
#define ACCEL_PLAN_RANKS_COLLECTIVES_H

#include "gen/program/program.h"

/* Fills program->ranks.collectives and the steps' `complete`, after the pass that allocates gradients. Nothing with one
 * rank.
 *
 * Along an axis along which gradients are partial sums and states are whole, gradients are all-reduced: in buckets of
 * neighbours in memory, in the order in which the backward completes them, as PyTorch's DistributedDataParallel (Li et
 * al., "PyTorch Distributed", VLDB 2020). What a step's loss is the sum of follows.
 *
 * Where states are split, each rank needs its part of the gradients alone (gen/plan/ranks/shard.h), so the same buckets
 * are reduce-scattered, the parts all-reduced along other axes as soon as they are there, in a step's last micro-batch,
 * and the weights that were updated from them all-gathered (Rajbhandari et al., "ZeRO", SC 2020, stage 1). */
void plan_collectives(struct program *program);

/* What makes of partial gradients those that states are updated by, along an axis. */
enum collective_kind summing_collective(const struct program *program, enum axis axis);

/* Adds the all-reduces of the largest sizes of tensors in 8 bits, of each micro-batch, all in one; and of gradients. */
void add_scales(struct program *program);

/* Adds a sum of so many numbers of all ranks along an axis, between a step's gradients and its update. */
void add_sum(struct program *program, enum axis axis, const char *what, int64_t count, int64_t width);

/* Adds the sums of the loss: of the stages that divide the layers, of batches. */
void add_loss(struct program *program);

/* Adds the sums of the gradient's norm, over all ranks that have gradients of their own. */
void add_norm(struct program *program);

/* Bytes of a gradient's element on its way. */
int64_t wire_width(const struct job *job);

/* Bytes that a rank gives to a collective in a step. */
int64_t collective_bytes(const struct collective *collective);

/* What a collective is called: "all-reduce". */
const char *collective_name(enum collective_kind kind);

#endif
