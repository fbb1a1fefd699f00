/* Family: which of the available models a config.json of transformers is of, and what it says as keys of a job. */
#ifndef ACCEL_COMMANDS_START_FAMILY_H
#define ACCEL_COMMANDS_START_FAMILY_H

#include "gen/base/diag.h"
#include "gen/commands/cli/options.h"
#include "gen/model/model.h"
#include "gen/model/sample.h"

struct family {
  const char *config;       /* the config.json */
  const char *architecture; /* "LlamaForCausalLM" */
  const char *source;       /* the model's C */
  struct tree *model;
  const char *settings;        /* "KEY=VALUE ..." of the config that make it that class */
  struct config_value *values; /* of the model's config */
  int n_values;
  int64_t positions;           /* of a sequence, at most; 0: it has no limit, or is not of tokens */
  int64_t features;            /* of a row, for a model of rows; 0: of tokens */
  struct sample_tensors takes; /* what the model says that it takes; none: it does not say */
  const char *inputs; /* data.inputs of tensors that transformers names, as YAML; NULL: the model takes others */
};

/* Finds it for a folder with a config.json, or for such a file. `overrides` of model.config.KEY come before what the
 * file says. False with an error where no model is of its architectures, or has not a value of its. */
bool family_read(const struct options *options, const char *path, struct family *family, struct diagnostics *diags);

/* The model of a name such as "gpt2"; NULL where there is none. */
const char *family_source(const struct options *options, const char *name);

/* The names, each after a space and with one at the end. */
const char *family_names(const struct options *options);

/* The values as YAML in flow form: {"n_layer": 2, "rope.kind": ROPE_LLAMA3}. */
const char *family_config(struct arena *arena, const struct family *family);

#endif
