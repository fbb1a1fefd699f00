/* What the parts of labelled.h share. */
#ifndef ACCEL_COMMANDS_DATA_LABELLED_PARTS_H
#define ACCEL_COMMANDS_DATA_LABELLED_PARTS_H

#include "gen/commands/data/batch.h"
#include "gen/commands/data/labelled.h"
#include "gen/commands/data/labels.h"
#include "gen/commands/data/row_log.h"
#include "gen/commands/data/text_rows.h"

/* Records that are checked, and whose texts wait in a batch to be made tokens of. */
struct waiting {
  struct batch *batch;
  struct bytes records; /* struct waiting_record each */
  struct bytes targets; /* of all of them: int32 numbers of labels, of words for each word, or float32 */
  int count;
};

struct waiting_record {
  int texts, n_texts; /* in the batch: words, or one text, or two */
  uint32_t n_targets;
  bool no_answer; /* of TASK_SPANS: the context does not answer the question */
};

/* Takes a record of a file into `waiting`; `labels` get names that are new. Nothing of it stays after false, with a
 * problem. */
bool labelled_take(const struct labelling *what, const struct text_rows *rows, struct labels *labels,
                   struct waiting *waiting, const struct json_t *record, struct made_text *made,
                   struct problem *problem);

/* Writes the arrays and the names of the labels, and prints what is in them: rows of so many records. False with a
 * problem. */
bool labelled_write_arrays(const struct labelling *what, const struct text_rows *rows, struct labels *labels,
                           const struct row_log *log, int64_t records, struct problem *problem);

/* The label of what does not count, for a loss that leaves it out. */
enum { NO_LABEL = -100 };

#endif
