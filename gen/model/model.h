/* Model: reads a model written in C against accel/model.h and gives its graph. The file is parsed by libclang and
 * evaluated over its syntax tree; it is never compiled or run. */
#ifndef ACCEL_MODEL_MODEL_H
#define ACCEL_MODEL_MODEL_H

#include "gen/ir/graph.h"
#include "gen/spec/job.h"

/* A tensor that the data gives: the entry's parameter of this name gets it. */
struct model_input {
  const char *name; /* "tokens" */
  struct shape shape;
  enum dtype dtype;
};

/* What to build from a model's source. */
struct model_request {
  const char *entry; /* the function: "model", "predict" */
  bool loss;         /* its result must be a scalar */
  bool prediction;   /* what its call of 'predict' gave becomes the entry's second result */
  const struct config_value *config;
  int n_config;
  struct location config_where; /* of model.config in the job, for what is missing there */
  const struct model_input *inputs;
  int n_inputs;
};

/* A parsed model: one parse serves several entries. */
struct tree;

/* Parses a model and everything that it includes. `file` is as the user named it. NULL with errors in `diags` when the
 * file cannot be read or is not C. */
struct tree *model_parse(struct arena *arena, const char *file, struct diagnostics *diags);

/* The same from text that is in memory. */
struct tree *model_parse_text(struct arena *arena, const char *file, const char *text, struct diagnostics *diags);

/* The files that a model includes, as the compiler names them, but for the headers that the generator has in itself. */
const char *const *model_includes(const struct tree *model, int *count);

/* 16 hexadecimal digits over the tokens of the model's C, comments left out: another model has others. */
const char *model_digest(const struct tree *model);

/* Whether the model defines this function. */
bool model_has(const struct tree *model, const char *entry);

/* Whether this function of the model has a parameter of the name. */
bool model_takes(const struct tree *model, const char *entry, const char *input);

/* The graph of one entry. NULL with errors in `diags`. */
struct graph *model_graph(struct arena *arena, const struct tree *model, const struct model_request *request,
                          struct diagnostics *diags);

#endif
