/* Collectives: what ranks do together in a step, from how the job lays tensors on its grid of ranks. This is the only
 * location that says which collective runs when. */
#ifndef ACCEL_PLAN_RANKS_COLLECTIVES_H
#define ACCEL_PLAN_RANKS_COLLECTIVES_H

#include "gen/program/program.h"

/* Fills program->ranks.collectives and the steps' `complete`, after the pass that allocates gradients. Nothing with one
 * rank.
 *
 * Along dp_replicate every rank holds the whole of each weight and a gradient that is a partial sum, so gradients are
 * all-reduced: in buckets of neighbours in memory, in the order in which the backward completes them, as PyTorch's
 * DistributedDataParallel (Li et al., "PyTorch Distributed", VLDB 2020). What a step's loss is the sum of follows.
 *
 * Along dp_shard each rank needs its part of the gradients alone (gen/plan/ranks/shard.h), so the same buckets are
 * reduce-scattered, the parts all-reduced along dp_replicate as soon as they are there, in a step's last micro-batch,
 * and the weights that were updated from them all-gathered (Rajbhandari et al., "ZeRO", SC 2020, stage 1). */
void plan_collectives(struct program *program);

/* Bytes of a gradient's element on its way. */
int64_t wire_width(const struct job *job);

/* Bytes that a rank gives to a collective in a step. */
int64_t collective_bytes(const struct collective *collective);

/* What a collective is called: "all-reduce". */
const char *collective_name(enum collective_kind kind);

#endif
