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
  size_t path_bytes; /* of all paths */
  json_t *json;
};

/* Reads the file. False where there is none, and with an error where it is no config.json. */
bool published_read(struct arena *arena, const char *path, struct published_values *values, struct diagnostics *diags);

/* The values of a config.json that is in memory; false where it is none. */
bool published_parse(struct arena *arena, const char *json, struct published_values *values);

void published_free(struct published_values *values);

/* Whether a key says nothing of what a model computes from its weights: names, tokens' numbers, how it was trained. */
bool published_is_aside(const char *path);

/* null, false, 0, "". */
bool published_is_nothing(const json_t *value);

/* The value as JSON. */
const char *published_text(struct arena *arena, const json_t *value);

/* The number that a field of the config holds; false where it is no field with a number. */
typedef bool published_number(const void *context, const char *field, double *number);

/* A word of a model's table as JSON: null, true, false, a product of numbers and fields such as 4*n_embd or
 * hidden_size/num_attention_heads, or itself as a text. The caller's. */
json_t *published_word(struct arena *arena, const char *word, published_number *number_of, const void *context);

#endif
