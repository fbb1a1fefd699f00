/* Stage traffic: what each rank along the axis of layers exchanges in a step, along all axes. */
#ifndef ACCEL_PLAN_RANKS_STAGE_TRAFFIC_H
#define ACCEL_PLAN_RANKS_STAGE_TRAFFIC_H

#include "gen/program/program.h"

/* Fills the collectives of program->ranks.pipeline, by rank: values and gradients that its stages give to the stages
 * before and after them, what its kernels exchange, and of its own parameters the sums of gradients and the gathers of
 * weights. A gradient that two ranks share each sends to the other; of more than two, those between the first and the
 * last send three times, as they add up with either and send the sum on. program->ranks.collectives are those of the
 * rank that gives most bytes. After crossings, the schedule and flat ranges are known. */
void plan_stage_traffic(struct program *program);

/* Bytes that a rank along the axis of layers gives to others along it in a step of a program that trains. */
int64_t stage_sent_bytes(const struct program *program, int rank);

#endif
