/* Weights that are written in a type of 16 bits. */
#ifndef RUNTIME_WEIGHTS_NARROW_H
#define RUNTIME_WEIGHTS_NARROW_H

#include "runtime/weights/tensors.h"

/* Has each float32 tensor of the list written in `dtype` (ACCEL_BFLOAT16 or ACCEL_FLOAT16), rounded to the nearest,
 * ties to even, when it is written; a value beyond fp16's range becomes an infinity, as in PyTorch. Other tensors,
 * scales of codes, and all with ACCEL_FLOAT32 stay as they are. */
bool rt_tensors_narrow(const struct accel_program *program, struct tensor_list *list, enum accel_dtype dtype,
                       struct problem *problem);

#endif
