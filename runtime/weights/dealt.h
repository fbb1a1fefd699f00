/* Tensors in place of which each rank along an axis of the mesh has another one (struct accel_dealt_tensor), as the
 * experts of a mixture: which they are. */
#ifndef RUNTIME_WEIGHTS_DEALT_H
#define RUNTIME_WEIGHTS_DEALT_H

#include "include/accel/trainer.h"

/* What is said of a tensor by its position; NULL: all ranks have it. */
const struct accel_dealt_tensor *rt_dealt_of(const struct accel_program *program, int tensor);

/* The name of the tensor that rank `rank` along the axis has in place of `name`. The caller owns it; NULL: there is no
 * memory. */
char *rt_dealt_name(const struct accel_dealt_tensor *dealt, const char *name, int rank);

#endif
