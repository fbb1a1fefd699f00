/* Pipeline: which statements of the model's functions are whose, where ranks along parallelism.pp divide the layers
 * (gen/plan/graph/stages.h), and what they give each other. */
#ifndef ACCEL_PLAN_RANKS_PIPELINE_H
#define ACCEL_PLAN_RANKS_PIPELINE_H

#include "gen/program/program.h"

/* Sets step.stage and step.stages of the functions that stages divide, function.staged, and the crossings of
 * program->ranks.pipeline. What a stage needs of another is one of these:
 *   - made of samples and constants alone: each stage that needs it makes it;
 *   - made by a stage before, in the backward by one after: it crosses, and those between the two pass it on.
 * And pipeline.schedule and slots. False with an error at the key where a value comes from the other side. Nothing
 * without a pipeline. After functions are laid out. */
bool plan_pipeline(struct program *program, struct diagnostics *diags);

#endif
