/* Fields: what the config of a model has. */
#ifndef ACCEL_MODEL_FIELDS_H
#define ACCEL_MODEL_FIELDS_H

#include "gen/model/model.h"

struct model_field {
  const char *name;  /* "n_layer", "rope.theta", "widths.0" */
  const char *value; /* its default as YAML; NULL: it has none */
};

/* Those of the entry's config, in the order of its declaration; returns how many. 0 where it takes no config. */
int model_fields(struct arena *arena, const struct tree *model, const char *entry, struct model_field **fields);

#endif
