/* Target: what is known of the processor that a program is for. */
#ifndef ACCEL_PLAN_TARGET_H
#define ACCEL_PLAN_TARGET_H

#include "gen/ir/tensor.h"

/* How products of a type run, as a line for people; "" for float32. in_blocks: the job asks for the same bits with any
 * number of threads. Says of this machine what the runtime would choose
 * on it; it is no part of a program's text, which is the same wherever it is made. */
const char *target_text(struct arena *arena, enum dtype dtype, bool in_blocks);

#endif
