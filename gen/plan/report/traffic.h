/* What ranks send each other in a step, as text and as JSON. */
#ifndef ACCEL_PLAN_REPORT_TRAFFIC_H
#define ACCEL_PLAN_REPORT_TRAFFIC_H

#include <jansson.h>

#include "gen/program/program.h"

/* A line of the plan's figures, and one of the bytes over each axis where there are several. */
const char *traffic_summary(const struct program *program);

/* A line for each collective of a step, in order, and one for those that come again; of stages, of each rank along the
 * axis of layers that has others than those before it. "" with one rank. */
const char *traffic_text(const struct program *program);

/* [{kind, axis, ranks, what, bytes, times}] in order; bytes of each time, which a rank gives; after: the statement
 * of the backward after which gradients are sent; overlaps: what runs until it is awaited; chained: it begins when the
 * one before it has ended. */
json_t *traffic_json(const struct program *program, const struct collective_list *collectives);

#endif
