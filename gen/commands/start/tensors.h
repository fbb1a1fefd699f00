/* Tensors: what published weights have, next to the parameters of a model that is planned. */
#ifndef ACCEL_COMMANDS_START_TENSORS_H
#define ACCEL_COMMANDS_START_TENSORS_H

#include <jansson.h>

#include "gen/base/diag.h"
#include "gen/model/published.h"
#include "gen/program/program.h"

enum tensor_state {
  TENSOR_USED,
  TENSOR_FRESH,   /* a parameter without a tensor, which the job initializes */
  TENSOR_IGNORED, /* a tensor that the job leaves out */
  TENSOR_MASK,    /* a buffer that follows from the config, such as a causal mask or angles */
  TENSOR_HEAD,    /* of another class's head, by the model's table other_heads */
  TENSOR_COPY,    /* the same bytes as a tensor that is used */
  TENSOR_MISSING, /* a parameter without a tensor */
  TENSOR_UNUSED,  /* a tensor without a parameter */
  TENSOR_UNLIKE,  /* their shapes or types differ */
  TENSOR_STATES
};

struct tensor_row {
  enum tensor_state state;
  const char *parameter;     /* NULL: none has the tensor */
  const char *name;          /* of the tensor; NULL: there is none */
  const char *pattern;       /* of the table other_heads, for TENSOR_HEAD */
  const char *shape, *dtype; /* of the tensor, else of the parameter */
};

struct tensor_table {
  struct tensor_row *items; /* parameters in their order, then tensors without one */
  int count, capacity;
  int states[TENSOR_STATES]; /* how many rows are in each */
};

/* Whether a folder has weights that a trainer reads. */
bool tensors_are_in(const char *folder);

/* The value of model.weights_map for the published weights at `path` where tensors have names of other times, which
 * transformers and diffusers rename, too; NULL: they need none, or cannot be read. */
const char *tensors_map(const char *path);

/* Compares the program's parameters with the files that its job starts from, by their headers. `heads` are the model's
 * patterns of tensors of other classes. False with an error where the files cannot be read. */
bool tensors_compare(const struct program *program, const struct model_texts *heads, struct tensor_table *table,
                     struct diagnostics *diags);

/* Reports as errors what the trainer would refuse: missing, unused and unlike tensors. Whether there is none. */
bool tensors_check(const struct program *program, const struct tensor_table *table, struct diagnostics *diags);

/* Patterns for model.ignore of the masks, heads and copies, without those that another pattern has; *count of them. */
const char **tensors_ignorable(struct arena *arena, const struct tensor_table *table, int *count);

/* "21 used, 2 masks left out". */
const char *tensors_summary(struct arena *arena, const struct tensor_table *table);

/* The table for people, and as a list of {state, parameter, tensor, shape, dtype}. */
const char *tensors_text(struct arena *arena, const struct tensor_table *table);
json_t *tensors_json(const struct tensor_table *table);

#endif
