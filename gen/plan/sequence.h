/* Sequence: the order in which the collectives of a step begin, and what runs beside each of them. */
#ifndef ACCEL_PLAN_SEQUENCE_H
#define ACCEL_PLAN_SEQUENCE_H

#include "gen/plan/program.h"

/* Puts the gathers of layers, which plan_gathers has planned, among program->collectives, and these in the order in
 * which they begin: those of the forward, of the backward, then the others as they stand. Tells of each that begins
 * within a micro-batch what runs until it is awaited. */
void sequence_collectives(struct program *program);

/* An iteration of a statement for people: "block_backward of layer 3". */
const char *step_label(const struct program *program, const struct step *step, int iteration);

#endif
