/* Placements: how each class of values is placed along each axis of the mesh, human-readable. */
#ifndef ACCEL_PLAN_REPORT_PLACEMENTS_H
#define ACCEL_PLAN_REPORT_PLACEMENTS_H

#include "gen/program/program.h"

/* A line for each axis of several ranks, and one for each matmul and table that ranks along tp have whole, with why;
 * "" for one rank. */
const char *placements_text(const struct program *program);

#endif
