/* Print: a plan after a pass, for accel-gen plan --dump. */
#ifndef ACCEL_PLAN_REPORT_PRINT_H
#define ACCEL_PLAN_REPORT_PRINT_H

#include "gen/program/program.h"

/* The program's functions, steps and memory as text, stable from run to run. */
const char *program_text(struct arena *arena, struct program *program);

#endif
