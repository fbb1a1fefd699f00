/* Quantized weights: where the scales of a weight of codes are (model.quantize). */
#ifndef ACCEL_PROGRAM_QUANTIZED_H
#define ACCEL_PROGRAM_QUANTIZED_H

#include "gen/program/program.h"

enum quantized_part { QUANTIZED_ABSMAX, QUANTIZED_NESTED_ABSMAX, QUANTIZED_NESTED_OFFSET, QUANTIZED_PARTS };

/* The name that scales have in a module, in place of "weight": "weight_nf4_absmax". It names the levels, so that a
 * program finds no scales where a file has codes of others; that of int8 is bitsandbytes'. NULL: there are none. */
const char *quantized_name(const struct job *job, enum quantized_part part);

/* The buffer of a weight; NULL: it has none. */
const struct weight *quantized_buffer(const struct program *program, const struct quantized *quantized,
                                      enum quantized_part part);

#endif
