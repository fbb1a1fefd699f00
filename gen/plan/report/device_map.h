/* The device map of a program: which memory modules are in, what they take, and what comes from elsewhere while the
 * program runs. */
#ifndef ACCEL_PLAN_REPORT_DEVICE_MAP_H
#define ACCEL_PLAN_REPORT_DEVICE_MAP_H

#include "gen/program/program.h"

/* bandwidth: bytes a second that come from another memory; 0: it is not known, and no times are given. */
const char *device_map_text(const struct program *program, double bandwidth);

/* The same as one JSON object, with Accelerate's names: device_map {module: memory}, max_memory {memory: bytes},
 * module_sizes {name: bytes}, largest_layer {bytes, names}, streams [{module, from, while, bytes, seconds}]. */
const char *device_map_json(const struct program *program, double bandwidth);

#endif
