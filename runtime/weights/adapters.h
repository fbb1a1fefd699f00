/* Low-rank adapters at the end of a run: saved in PEFT's layout, and added to the weights that they stand beside. */
#ifndef RUNTIME_WEIGHTS_ADAPTERS_H
#define RUNTIME_WEIGHTS_ADAPTERS_H

#include "runtime/process/problem.h"
#include "runtime/trainer.h"
#include "runtime/weights/tensors.h"

/* Writes the folder `folder`: adapter_model.safetensors and adapter_config.json, as PeftModel.from_pretrained reads
 * them. `weights`: the parameters. */
bool rt_adapters_save(const struct accel_program *program, const char *folder, const void *weights,
                      struct problem *problem);

/* Adds scale B A to each weight with an adapter, and sets its B to 0: the model stays what it was. */
void rt_adapters_merge(const struct accel_program *program, void *weights);

/* Takes the adapters out of a list of tensors by the names of parameters. */
void rt_adapters_leave_out(const struct accel_program *program, struct tensor_list *tensors);

#endif
