/* Quantized weights: where the scales of a weight of 4-bit codes are (model.quantize). */
#ifndef ACCEL_PROGRAM_QUANTIZED_H
#define ACCEL_PROGRAM_QUANTIZED_H

#include "gen/program/program.h"

enum quantized_part { QUANTIZED_ABSMAX, QUANTIZED_NESTED_ABSMAX, QUANTIZED_NESTED_OFFSET, QUANTIZED_PARTS };

/* What follows the weight's name in that of its scales: "_nf4_absmax". It names the levels, so that a program finds no
 * scales where a file has codes of others. */
const char *quantized_suffix(const struct job *job, enum quantized_part part);

/* The buffer of a weight; NULL: it has none. */
const struct weight *quantized_buffer(const struct program *program, const struct quantized *quantized,
                                      enum quantized_part part);

#endif
