/* The parameters of a pipeline's ranks. */
#ifndef ACCEL_PROGRAM_STAGE_PARAMETERS_H
#define ACCEL_PROGRAM_STAGE_PARAMETERS_H

#include "gen/program/exchange.h"

/* Whether the stages of a rank along parallelism.pp use the parameter of that absolute name. */
bool rank_uses(const struct pipeline *pipeline, int rank, const char *path);

#endif
