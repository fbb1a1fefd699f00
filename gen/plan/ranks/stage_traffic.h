/* Stage traffic: what ranks that divide the layers give each other in a step. */
#ifndef ACCEL_PLAN_RANKS_STAGE_TRAFFIC_H
#define ACCEL_PLAN_RANKS_STAGE_TRAFFIC_H

#include "gen/program/program.h"

/* Adds a message of one rank along the axis of layers to program->ranks.collectives: `count` elements of `width` bytes,
 * `times` in a step. */
void stage_add_send(struct program *program, const char *what, int64_t count, int64_t width, int64_t times);

/* Adds what one rank between two others gives to them. */
void stage_add_crossings(struct program *program);

/* Adds gradients of what stages of several ranks use. Of two each sends the other one its own; of more than two, those
 * between the first and the last add up with either, and send the sum on. */
void stage_add_shared(struct program *program);

/* Elements of a weight's gradient, with what pads it. */
int64_t stage_padded_elements(const struct weight *weight);

/* Bytes that a rank along the axis of layers gives to others along it in a step of a program that trains. The
 * collectives are those of a rank between two others; the first one and the last one give less. After
 * plan_pipeline. */
int64_t stage_sent_bytes(const struct program *program, int rank);

#endif
