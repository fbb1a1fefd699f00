/* Bytes: the contents of a program's arena, by purpose. */
#ifndef ACCEL_PLAN_REPORT_BYTES_H
#define ACCEL_PLAN_REPORT_BYTES_H

#include "gen/program/program.h"

/* Fills program->figures.bytes and program->library.workspace from the plan, again where it has changed. They are those
 * of the C types in the emitted arena, to the last one. */
void count_bytes(struct program *program);

/* What the second entry works in more than a step: an evaluation of larger batches may exceed the step's scratch, and
 * what is saved in a step if it has that memory, too. */
int64_t evaluation_excess(const struct program *program);

#endif
