/* Rows on their way into arrays: a file to which they are added as they are made, and that is read when all are there.
 * So they take no memory, and a run that was killed resumes with those that it had. */
#ifndef ACCEL_COMMANDS_DATA_ROW_LOG_H
#define ACCEL_COMMANDS_DATA_ROW_LOG_H

#include "gen/tokenizer/bytes.h"
#include "runtime/files/files.h"
#include "runtime/files/mapping.h"

struct row {
  uint32_t n_ids, n_targets;
  const uint32_t *ids;     /* tokens */
  const int32_t *targets;  /* labels, or the bits of a float32 */
  const uint8_t *segments; /* of each token */
};

struct row_log {
  struct writer writer;
  struct bytes added; /* rows that are not written yet */
  uint64_t size;      /* bytes of those that are */
  int64_t rows;       /* of both */
  bool is_open;
  struct mapping file; /* once it is read */
  uint64_t *starts;    /* of its rows */
};

/* Begins OUTPUT.rows.partial, or resumes one that has `rows` rows in its first `size` bytes. False with a problem.
 */
bool row_log_begin(struct row_log *log, const char *output, struct problem *problem);
bool row_log_resume(struct row_log *log, const char *output, int64_t rows, uint64_t size, struct problem *problem);

/* Adds a row, to be written with others. */
void row_log_add(struct row_log *log, const struct row *row);

/* Writes them. False with a problem. */
bool row_log_write(struct row_log *log, struct problem *problem);

/* Makes all rows readable, when the last one is written. False with a problem, such as a row of more than `length`
 * tokens, which no run of that length has written. */
bool row_log_read(struct row_log *log, uint32_t length, struct problem *problem);

/* A row; rows that are read in their order leave the memory again. */
struct row row_log_at(const struct row_log *log, int64_t row);

/* Closes the file, and removes it unless it is to be kept for a run that resumes. */
void row_log_end(struct row_log *log, bool keeps);

#endif
