/* Training in 8 bits: the names of what a layer keeps of its tensors' sizes (gen/plan/graph/fp8.h). */
#ifndef ACCEL_PROGRAM_FP8_H
#define ACCEL_PROGRAM_FP8_H

#include <stdbool.h>
#include <stdint.h>

#include "gen/program/program.h"

/* What names begin with, below the layer's module: of a tensor's scale, and of its sizes; and how names of tensors of
 * gradients end. */
extern const char fp8_scale_beginning[], fp8_history_beginning[], fp8_gradient[];

/* Whether a parameter's name is one of these; a file of weights need not have it. */
bool is_fp8_state(const char *name);

/* The sizes of the tensor whose scale `scale` is; NULL where it is something else. */
const struct weight *fp8_history(const struct program *program, const struct weight *scale);

/* Whether products are of codes of 8 bits, which the device's library multiplies; else what is rounded stays floats. */
bool fp8_has_codes(const struct program *program);

/* The axes along which ranks have parts of a tensor that has one scale: of its rows, or with tensors in parts. */
struct axes fp8_axes(const struct program *program);

/* The rank along the axis of layers whose stage has the scale; 0 where layers are not divided. */
int fp8_rank_of(const struct program *program, const struct weight *scale);

/* How many of a tensor's sizes are kept. */
int64_t fp8_history_length(const struct job *job);

/* Whether the gradient of a weight, and the weight, are rounded as backend: msamp does with those of its layers. */
bool fp8_rounds_weight(const struct program *program, const struct weight *weight);

/* How many these are, where the program trains. */
int64_t fp8_rounded_weights(const struct program *program);

/* How many scales a program moves when a batch is over: those of backend: te and msamp, where it trains. */
int64_t fp8_scales(const struct program *program);

#endif
