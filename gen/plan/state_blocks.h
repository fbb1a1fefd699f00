/* States of 8 bits on ranks that divide tensors: a scale is of a block of elements in a row, and blocks are those of
 * one process. */
#ifndef ACCEL_PLAN_STATE_BLOCKS_H
#define ACCEL_PLAN_STATE_BLOCKS_H

#include "gen/base/diag.h"
#include "gen/program/program.h"

/* Whether the states of a parameter have 8 bits, by its elements on all ranks. */
bool states_have_codes(const struct program *program, const struct parameter *parameter);

/* Whether what a rank has of a weight with such states is whole blocks. False, with an error at the job's key and the
 * weight's name and shape, where a rank would have some of a block. */
bool check_state_blocks(const struct program *program, const struct weight *weight, struct diagnostics *diags);

#endif
