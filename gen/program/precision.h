/* Precision: the types of numbers as a job names them. */
#ifndef ACCEL_PROGRAM_PRECISION_H
#define ACCEL_PROGRAM_PRECISION_H

#include "gen/ir/tensor.h"
#include "gen/spec/choices.h"

/* PRECISION_NO: float32. */
enum dtype precision_dtype(enum mixed_precision precision);

#endif
