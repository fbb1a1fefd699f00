/* Stage memory: which bytes of the arena a rank along the axis of layers uses. All ranks have the same arena. On
 * processors the pages that a rank does not touch take no memory; a device with memory of its own maps the used bytes
 * alone. */
#ifndef ACCEL_PLAN_RANKS_STAGE_MEMORY_H
#define ACCEL_PLAN_RANKS_STAGE_MEMORY_H

#include "gen/program/program.h"

/* Bytes from the start of a member of the arena, in order, none adjacent to the next. */
struct byte_range {
  int64_t first, end;
};
struct byte_ranges {
  struct byte_range *items;
  int count, capacity;
};

/* Their sum. */
int64_t byte_ranges_sum(const struct byte_ranges *ranges);

/* What a rank's stages use of a tree of parameters, in float32: of layers that are where others are, too, once. */
struct byte_ranges stage_tree_ranges(const struct program *program, const struct weight_tree *tree, int rank);

/* What they use of the saved values of all micro-batches, which are one after the other. */
struct byte_ranges stage_saved_ranges(const struct program *program, int rank);

/* Bytes of the saved values of one micro-batch in a stage. */
int64_t stage_slot_bytes(const struct program *program, int stage);

/* Of a device with memory of its own, fills program->ranks.pipeline.unused. After all that lays out the arena. What is
 * not known to be unused is in none of them. */
void plan_stage_memory(struct program *program);

/* What that leaves of the arena for a rank. */
int64_t stage_mapped_bytes(const struct program *program, int rank);

#endif
