/* Weights on their way into the project folder. */
#ifndef RUNTIME_SAVE_H
#define RUNTIME_SAVE_H

#include "run.h"

/* Writes a set of the program's parameters as `name` in the project folder. */
bool rt_save_as(const struct accel_run *run, const char *name, const void *weights, struct problem *problem);

/* Writes model.safetensors and, where averages are kept, ema.safetensors. Nothing before there are weights. */
bool rt_save(const struct accel_run *run, struct problem *problem);

#endif
