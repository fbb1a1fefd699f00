/* Stages: the memory of each stage of a pipeline and how long it waits, as accel-gen plan reports it. */
#ifndef ACCEL_PLAN_REPORT_STAGES_H
#define ACCEL_PLAN_REPORT_STAGES_H

#include <jansson.h>

#include "gen/program/program.h"

/* Lines with the schedule, the fraction of a step in which a stage waits for others, and the memory of each stage; ""
 * without a pipeline. With N ranks, V stages on each, and M micro-batches that fraction is (N - 1) / (V M + N - 1), of
 * GPipe (Huang et al., arXiv:1811.06965, section 2.3) and of 1F1B (Narayanan et al., arXiv:2104.04473, section 2.2), if
 * all stages take equally long. */
const char *stages_text(const struct program *program);

/* The same: {schedule, micro_batches, bubble, stages: [{layers, weights, gradients, optimizer, activations,
 * micro_batches: of how many at a time, chunks: of each of its stages, mapped, sends}]}, of a rank along pp each, in
 * bytes. mapped: of the arena, on a device with memory of its own. sends: what it gives to others along pp in a step of
 * training. */
json_t *stages_json(const struct program *program);

#endif
