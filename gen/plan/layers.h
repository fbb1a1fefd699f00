/* Layers that are alike, so that a program's tables of parameters have the rows of one of them. */
#ifndef ACCEL_PLAN_LAYERS_H
#define ACCEL_PLAN_LAYERS_H

#include "gen/program/program.h"

/* Fills program->layers, once the states are known. */
void plan_layers(struct program *program);

#endif
