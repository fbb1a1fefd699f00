/* Compress: gradients that are sent as factors of matrices (Vogels et al., "PowerSGD", arXiv:1905.13727), as PyTorch's
 * powerSGD_hook and batched_powerSGD_hook. */
#ifndef ACCEL_PLAN_RANKS_COMPRESS_H
#define ACCEL_PLAN_RANKS_COMPRESS_H

#include "gen/program/program.h"

/* Fills program->ranks.compression and program->ranks.collectives. power_sgd: of each parameter the matrix of its first
 * dimension by all others, where its factors are min_compression_rate times smaller; all other gradients are sent
 * whole. batched_power_sgd: each bucket_cap_mb of memory is one square, row after row, with zeros after it. */
void plan_compression(struct program *program);

/* Fills program->ranks.compression for a pipeline: each of its ranks has the matrices of its stages, at the offsets
 * that they have without stages. add_compressed adds the collectives of one of these ranks. */
void plan_stage_compression(struct program *program);
void add_compressed(struct program *program, int rank);

/* Bytes of the arena other than the gradients and what outlives a step. */
int64_t compression_bytes(const struct program *program);

/* Elements of the factors of a rank of a pipeline; without one, rank 0 has all. */
int64_t stage_factors(const struct program *program, int rank);

/* Adds what outlives a step: the right factors, what the factors missed, and the state of hooks.on_bucket. */
void compression_states(struct program *program);

#endif
