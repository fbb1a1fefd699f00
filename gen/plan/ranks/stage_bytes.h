/* Stage bytes: what each rank along the axis of layers has of each kind of memory. All ranks have the same arena, of
 * which a rank touches what its stages use. */
#ifndef ACCEL_PLAN_RANKS_STAGE_BYTES_H
#define ACCEL_PLAN_RANKS_STAGE_BYTES_H

#include "gen/program/program.h"

struct stage_bytes {
  int64_t weights, gradients, optimizer, averages, activations;
};

/* What a rank touches of the arena. After plan_pipeline and the layout of memory. */
struct stage_bytes stage_bytes(const struct program *program, int rank);

/* Elements of a rank's parameters: of all, and of those with gradients that are added up along an axis (AXES: of all
 * with gradients). */
int64_t stage_elements(const struct program *program, int rank);
int64_t stage_summed_elements(const struct program *program, int rank, enum axis axis);

/* Elements of a rank's shards of what its stages have; of those whose gradients are added up along an axis (AXES: of
 * all). Without stages: rank 0. */
int64_t stage_own_elements(const struct program *program, int rank, enum axis axis);

/* Bytes of a tree in which a rank's stages have their weights or gradients: of layers that are where others are, too,
 * once. */
int64_t stage_held_bytes(const struct program *program, const struct weight_tree *tree, int rank);

#endif
