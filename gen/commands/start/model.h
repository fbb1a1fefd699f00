/* Model: whether a published folder's weights are those of its model. */
#ifndef ACCEL_COMMANDS_START_MODEL_H
#define ACCEL_COMMANDS_START_MODEL_H

#include "gen/commands/cli/options.h"
#include "gen/commands/start/tensors.h"

/* Plans the model of a folder of Hugging Face and compares its parameters with the folder's tensors, in *table. False
 * after errors on standard error: the folder is not of a model here, or a tensor is missing, unused or of another
 * shape. */
bool model_fits_folder(const struct options *options, const char *folder, struct tensor_table *table);

#endif
