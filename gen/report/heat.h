/* Heat: many series of a run in one picture, a row for each and time from left to right. */
#ifndef ACCEL_REPORT_HEAT_H
#define ACCEL_REPORT_HEAT_H

#include "gen/report/metrics.h"

enum { HEAT_ROWS = 64, HEAT_COLUMNS = 64, HEAT_LEVELS = 9 };

/* The norms of the series whose names begin with a prefix. Where these are more than HEAT_ROWS, a row is of all that
 * have the same parts of their names before a dot, as many parts as HEAT_ROWS allow: the root of the sum of squares. */
struct heat {
  struct heat_row {
    const char *name;           /* without the prefix */
    int series;                 /* that are in it */
    double norms[HEAT_COLUMNS]; /* means over the lines of a column; below 0: it has none */
  } rows[HEAT_ROWS];
  int n_rows, n_series, n_columns;
  int64_t last[HEAT_COLUMNS]; /* the last step of each column */
  double least, most;         /* of the norms above 0 */
  const char *paths; /* of SVG, in a square of n_columns by n_rows: the cells of each level from 0 on, by the logarithm
                        of their norm, with the class "qN" */
};

/* NULL: there are no such series. */
struct heat *heat_of(struct arena *arena, const struct metrics *metrics, const char *prefix);

#endif
