/* Tensors in place of which each rank along an axis of the mesh has another one (struct accel_expert_tensor), as the
 * experts of a mixture: which they are. */
#ifndef RUNTIME_WEIGHTS_EXPERTS_H
#define RUNTIME_WEIGHTS_EXPERTS_H

#include "include/accel/trainer.h"

/* What is said of a tensor by its position; NULL: all ranks have it. */
const struct accel_expert_tensor *rt_expert_tensor_of(const struct accel_program *program, int tensor);

/* The name of the tensor that rank `rank` along the axis has in place of `name`. The caller owns it; NULL: there is no
 * memory. */
char *rt_expert_name(const struct accel_expert_tensor *expert, const char *name, int rank);

#endif
