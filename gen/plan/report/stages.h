/* Stages: what each stage of a pipeline holds and how long it waits, as accel-gen plan reports it. */
#ifndef ACCEL_PLAN_REPORT_STAGES_H
#define ACCEL_PLAN_REPORT_STAGES_H

#include <jansson.h>

#include "gen/program/program.h"

/* Lines with the schedule, the share of a step in which a stage waits for others, and the memory of each stage; ""
 * without a pipeline. With N stages and M micro-batches the share is (N - 1) / (M + N - 1) (Huang et al., "GPipe",
 * arXiv:1811.06965, section 2.3), if all stages take equally long. */
const char *stages_text(const struct program *program);

/* The same: {schedule, micro_batches, bubble, stages: [{layers, weights, gradients, optimizer, activations}]}, memory
 * in bytes. */
json_t *stages_json(const struct program *program);

#endif
