/* What the tests of the model reader share: reading a model as a job would. */
#ifndef TESTS_MODEL_READING_H
#define TESTS_MODEL_READING_H

#include "gen/model/model.h"

enum { MOST_CONFIG = 32 };

/* How a model is read: "model" or another entry, and its config. */
struct model_options {
  const char *entry;
  struct config_value config[MOST_CONFIG];
  int n_config;
};

/* Adds the values of a line such as "n_layer=4 bias=true name=x": the first one is at job.yaml:2:3. */
void options_add_config(struct arena *arena, struct model_options *options, const char *line);

/* The options in a model file's own comments: "// job: n_layer=4" and "// entry: predict". */
struct model_options options_of_comments(struct arena *arena, const char *text);

/* The graph of a parsed model, with tokens and targets [12][64], features [12][30] and labels [12] as data. */
struct graph *read_graph(struct arena *arena, const struct tree *program, const struct model_options *options,
                         struct diagnostics *diags);

/* The whole file as a string; NULL when it cannot be read. */
const char *read_file(struct arena *arena, const char *path);

/* The diagnostics as a person sees them. */
const char *printed(struct arena *arena, const struct diagnostics *diags);

#endif
