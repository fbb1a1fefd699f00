/* Low-rank adapters at the end of a run: saved in PEFT's layout, and added to the weights that they belong to, in
 * what is written and not in the run's memory: that has them apart at any time. */
#ifndef RUNTIME_WEIGHTS_ADAPTERS_H
#define RUNTIME_WEIGHTS_ADAPTERS_H

#include "include/accel/trainer.h"
#include "runtime/base/problem.h"
#include "runtime/weights/tensors.h"

/* Writes the folder `folder`: adapter_model.safetensors and adapter_config.json, as PeftModel.from_pretrained reads
 * them. `weights`: the parameters. */
bool rt_adapters_save(const struct accel_program *program, const char *folder, const void *weights,
                      struct problem *problem);

/* Makes the model of `tensors`, which has the parameters at `weights` by their names, one without adapters: what is
 * written of a weight that has one is W + scale B A. False: no memory. */
bool rt_adapters_merge(const struct accel_program *program, const void *weights, struct tensor_list *tensors,
                       struct problem *problem);

#endif
