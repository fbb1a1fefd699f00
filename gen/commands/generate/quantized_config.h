/* What a config.json says of weights in codes, so that transformers opens them. */
#ifndef ACCEL_GENERATE_QUANTIZED_CONFIG_H
#define ACCEL_GENERATE_QUANTIZED_CONFIG_H

#include "gen/program/program.h"

/* The text of a config.json, an object, with the group quantization_config of transformers' BitsAndBytesConfig. */
const char *quantized_config(const struct program *program, const char *text);

#endif
