/* Published file: a config.json as a list of its values. */
#ifndef ACCEL_MODEL_PUBLISHED_FILE_H
#define ACCEL_MODEL_PUBLISHED_FILE_H

#include <jansson.h>

#include "gen/base/diag.h"

/* A value that is no object or list, by where it is: "rope_scaling.factor", "hidden_sizes.0"; and of each object and
 * list how many it has: "id2label.#". */
struct published_value {
  const char *path;
  const json_t *value;
  bool known; /* the model has it, or it says nothing of what a model computes */
  bool own;   /* the value is this list's, not the file's */
};

struct published_values {
  struct published_value *items;
  int count, capacity;
  json_t *json;
};

/* Reads the file. False where there is none, and with an error where it is no config.json. */
bool published_read(struct arena *arena, const char *path, struct published_values *values, struct diagnostics *diags);

void published_free(struct published_values *values);

/* Whether a key says nothing of what a model computes from its weights: names, tokens' numbers, how it was trained. */
bool published_is_aside(const char *path);

/* null, false, 0, "". */
bool published_is_nothing(const json_t *value);

/* The value as JSON. */
const char *published_text(struct arena *arena, const json_t *value);

#endif
