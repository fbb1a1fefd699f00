/* Bytes: the contents of a program's arena, by purpose. */
#ifndef ACCEL_PLAN_REPORT_BYTES_H
#define ACCEL_PLAN_REPORT_BYTES_H

#include "gen/program/program.h"

/* Fills program->figures.bytes and program->library.workspace from the plan. They are those of the C types in the
 * emitted arena, to the last one. */
void count_bytes(struct program *program);

#endif
