/* Training in 8 bits: the names of what a layer keeps of its tensors' sizes (gen/plan/graph/fp8.h). */
#ifndef ACCEL_PROGRAM_FP8_H
#define ACCEL_PROGRAM_FP8_H

#include <stdbool.h>

/* What names begin with, below the layer's module: of a tensor's scale, and of its sizes. */
extern const char fp8_scale_beginning[], fp8_history_beginning[];

/* Whether a parameter's name is one of these; a file of weights need not have it. */
bool is_fp8_state(const char *name);

#endif
