/* Rows: a table of texts that a model has, and the values of its config, for commands that need both. */
#ifndef ACCEL_MODEL_ROWS_H
#define ACCEL_MODEL_ROWS_H

#include "gen/model/model.h"

enum { MODEL_ROW_CELLS = 6 };

/* The members of a struct of texts, in their order; NULL: left out. */
struct model_row {
  const char *cells[MODEL_ROW_CELLS];
};

struct model_rows {
  struct model_row *items;
  int count, capacity;
};

/* The rows of the model's table of this name; none where it has no such table. False with an error where it is not a
 * list of structs of at most MODEL_ROW_CELLS texts. */
bool model_rows(struct arena *arena, const struct tree *model, const char *table, struct model_rows *rows,
                struct diagnostics *diags);

enum model_value_kind { MODEL_INTEGER, MODEL_BOOL, MODEL_REAL, MODEL_TEXT };

/* A field of the config, or one within it, with its value or the model's default. */
struct model_value {
  const char *path; /* "n_layer", "rope.theta", "widths.0" */
  enum model_value_kind kind;
  double number;    /* of a number or a bool */
  const char *text; /* as C writes it: "12", "true", "ROPE_DEFAULT"; of a text itself */
  const char *word; /* of an enumerator without what all of them begin with: "default"; NULL: it is none */
};

struct model_values {
  struct model_value *items;
  int count, capacity;
};

/* All fields of the config that `request` gives the model. False with an error where one is missing or wrong. */
bool model_values(struct arena *arena, const struct tree *model, const struct model_request *request,
                  struct model_values *values, struct diagnostics *diags);

#endif
