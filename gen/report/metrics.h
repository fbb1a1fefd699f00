/* The metrics of a run: metrics.jsonl, an object a line, as series of numbers over steps. A file of any length becomes
 * at most COLUMNS columns, each of one line or of the lines of a range of steps, with the least, the largest and the
 * mean number of each series. */
#ifndef ACCEL_REPORT_METRICS_H
#define ACCEL_REPORT_METRICS_H

#include <stdbool.h>
#include <stdint.h>

#include "gen/base/arena.h"

enum { COLUMNS = 1024, MOST_SERIES = 2048 };

/* A series in a column. Where `count` is 0, the other numbers are 0. */
struct cell {
  double least, most, sum;
  int64_t count; /* numbers that are finite */
};

struct series {
  const char *name;   /* UTF-8 */
  struct cell *cells; /* by column */
  int64_t count, not_finite;
  double last; /* the number of the last line that has one; that line's step */
  int64_t last_step;
};

struct column {
  int64_t first, last; /* steps of its lines */
  int64_t lines;
  double seconds; /* that the steps up to `last` took, as far as step_ms says */
};

struct metrics {
  struct column *columns; /* by step */
  int n_columns;
  struct series *series; /* in the order in which the last line has them, then those of lines before it alone */
  int n_series;
  int64_t lines;      /* that count */
  int64_t superseded; /* lines of steps that a later line has again, or goes back before: they do not count */
  int64_t broken;     /* lines that are no object with a step, or too long */
  int64_t left_out;   /* numbers of series after the first MOST_SERIES */
  bool cut;           /* the last line is one that was not written to its end */
  bool has_seconds;   /* each line has step_ms */
};

/* Reads a file. False, and why in errno, where it cannot be read. */
bool metrics_read(struct arena *arena, const char *path, struct metrics *metrics);

/* The series of a name; NULL: there is none. */
const struct series *metrics_find(const struct metrics *metrics, const char *name);

#endif
