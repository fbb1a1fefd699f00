/* Low-rank adapters at the end of a run: saved in PEFT's layout, and added to the weights that they belong to, in
 * what is written and not in the run's memory: that has them apart at any time. */
#ifndef RUNTIME_WEIGHTS_ADAPTERS_H
#define RUNTIME_WEIGHTS_ADAPTERS_H

#include "include/accel/trainer.h"
#include "runtime/base/problem.h"
#include "runtime/weights/tensors.h"

/* The published model to which the adapters belong. */
struct adapter_base {
  char *const *names;      /* of the parameters there */
  const char *prefix;      /* before the names that adapters have, of a class that has more around them; "": none */
  const char *path, *task; /* base_model_name_or_path and task_type of PEFT; task NULL: none is known */
};

/* Writes the folder `folder`: adapter_model.safetensors and adapter_config.json, as PeftModel.from_pretrained reads
 * them. `weights`: the parameters. `base`: NULL: the job does not say which it is. */
bool rt_adapters_save(const struct accel_program *program, const char *folder, const void *weights,
                      const struct adapter_base *base, struct problem *problem);

/* Makes the model of `tensors`, which has the parameters at `weights` by their names, one without adapters: what is
 * written of a weight that has one is W + scale B A. False: no memory. */
bool rt_adapters_merge(const struct accel_program *program, const void *weights, struct tensor_list *tensors,
                       struct problem *problem);

#endif
