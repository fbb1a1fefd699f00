/* Config: the model's struct config from the job's model.config. */
#ifndef ACCEL_MODEL_CONFIG_H
#define ACCEL_MODEL_CONFIG_H

#include "gen/model/evaluate.h"
#include "gen/model/model.h"

/* A value of `type` whose fields are the request's values, and the model's `defaults` where it has none. Every
 * mismatch is reported, at its location in the job; then the evaluation ends. */
struct cvalue config_argument(struct evaluator *evaluator, const struct type *type,
                              const struct model_request *request);

/* The same without a word about what is missing or does not fit: such cells are unset. */
struct cvalue config_so_far(struct evaluator *evaluator, const struct type *type, const struct model_request *request);

/* The type of the config that a function of the model takes; NULL where it takes none. */
const struct type *config_type(const struct tree *model, const char *entry);

#endif
