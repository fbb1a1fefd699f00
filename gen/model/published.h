/* Published: the config.json next to published weights, compared with the config that a job gives a model. Weights of
 * another model can have the same shapes, and train without a word. */
#ifndef ACCEL_MODEL_PUBLISHED_H
#define ACCEL_MODEL_PUBLISHED_H

#include "gen/model/model.h"

/* Compares the config.json at `path`, where there is such a file, with the config of `request` for the model, by the
 * model's table `published` (struct published in accel/model.h) and, of keys that it does not name, by the fields' own
 * names. False with an error for each value that contradicts, at its location in the job, and where the file cannot be
 * read. *unknown becomes the keys whose values neither the model nor its table has, as "a (1), b (true)"; "" where
 * there is none. */
bool model_check_published(struct arena *arena, const struct tree *model, const struct model_request *request,
                           const char *path, struct diagnostics *diags, const char **unknown);

/* The values of a model's config that the config.json at `path` has, by the same table: what model_check_published then
 * finds nothing to say against. `request` has those that are given besides, which come first in *config. False with an
 * error where a value is none of its field's. */
bool model_config_of_published(struct arena *arena, const struct tree *model, const struct model_request *request,
                               const char *path, struct config_value **config, int *n_config,
                               struct diagnostics *diags);

/* The same of a config.json that is in memory. */
bool model_check_published_text(struct arena *arena, const struct tree *model, const struct model_request *request,
                                const char *json, struct diagnostics *diags);

/* The config.json of the model with the config of `request`, by the same table in the other direction: what init makes
 * this config of again. `positions` are those of its longest sequence; 0: it has none. NULL where the model is of no
 * class of transformers; NULL with a *reason where the classes compute nothing that this config does. */
const char *model_published_of_config(struct arena *arena, const struct tree *model,
                                      const struct model_request *request, int64_t positions, const char **reason);

/* What the model's table `architectures` says after a class of transformers such as "GPT2LMHeadModel": "", or values of
 * the config that make it that class, "qk_norm=false". NULL where it does not have the class. */
const char *model_class(struct arena *arena, const struct tree *model, const char *architecture);

/* A table of text that a model has. */
struct model_texts {
  const char **items;
  int count, capacity;
};

/* The model's table `other_heads`: patterns of tensors that published files of its classes have and it has not. */
struct model_texts model_other_heads(struct arena *arena, const struct tree *model);

/* The model's table `published_outputs`: the names that the parts of its result along axis 1 have in transformers. */
struct model_texts model_published_outputs(struct arena *arena, const struct tree *model);

/* The classes of the table `architectures` with a space between them; NULL where the model has none. */
const char *model_classes(struct arena *arena, const struct tree *model);

#endif
