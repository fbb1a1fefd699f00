/* What the tests of the model reader share: reading a model as a job would. */
#ifndef TESTS_MODEL_READING_H
#define TESTS_MODEL_READING_H

#include "gen/model/model.h"

enum { MOST_CONFIG = 32 };

/* What is asked of a model: "model" or another entry, and its config. */
struct asked {
  const char *entry;
  struct config_value config[MOST_CONFIG];
  int n_config;
};

/* Adds the values of a line such as "n_layer=4 bias=true name=x": the first one stands at job.yaml:2:3. */
void ask_config(struct arena *arena, struct asked *asked, const char *line);

/* What a model file's own comments ask for: "// job: n_layer=4" and "// entry: predict". */
struct asked ask_comments(struct arena *arena, const char *text);

/* The graph of a parsed model, with tokens and targets [12][64], features [12][30] and labels [12] as data. */
struct graph *read_graph(struct arena *arena, const struct tree *program, const struct asked *asked,
                         struct diagnostics *diags);

/* The whole file as a string; NULL when it cannot be read. */
const char *read_file(struct arena *arena, const char *path);

/* The diagnostics as a person sees them. */
const char *printed(struct arena *arena, const struct diagnostics *diags);

#endif
