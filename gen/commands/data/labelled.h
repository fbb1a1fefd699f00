/* Labelled rows: records of texts and labels to arrays (.npz) that data.inputs names, with the names of the labels in a
 * file next to them. */
#ifndef ACCEL_COMMANDS_DATA_LABELLED_H
#define ACCEL_COMMANDS_DATA_LABELLED_H

#include <stdbool.h>
#include <stdint.h>

#include "gen/tokenizer/documents.h"
#include "runtime/base/problem.h"

/* What the label is: the name of a class, names of several ones, a number, a name for each word of a list of words, the
 * part of the second text that answers the first. */
enum task { TASK_CLASSIFICATION, TASK_MULTI_LABEL, TASK_REGRESSION, TASK_TOKENS, TASK_SPANS };

struct labelling {
  enum task task;
  const char **files;
  int count;
  bool is_table;               /* the files are CSV or TSV, not JSON Lines */
  const char *text, *pair;     /* the columns or fields of the texts; pair: NULL, there is one text */
  const char *label;           /* of the label */
  const char *labels;          /* the list of their names (labels.h); NULL: those that occur */
  const char *tokenizer, *pad; /* the tokenizer.json; the text of the padding token, or NULL */
  int64_t length;              /* tokens of a row */
  int64_t stride;              /* of TASK_SPANS: tokens that two windows of a context share */
  const char *output, *names;  /* the .npz, and the .json of the labels' names; NULL: they have none */
  struct skipped *skipped;     /* the caller's: counts bad records; NULL: such a record is a problem */
  bool quiet;                  /* shows no progress, and prints nothing of what was written */
};

/* Writes both files, and prints what is in them. Threads make tokens of the texts at the same time. While it continues,
 * OUTPUT.rows.partial has the rows and OUTPUT.progress says where in the files it is; the same call resumes from there.
 * False with a problem, and without new files. */
bool labelled_write(const struct labelling *labelling, struct problem *problem);

#endif
