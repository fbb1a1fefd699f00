/* Bars: a series of numbers as columns of text, for a terminal. */
#ifndef ACCEL_REPORT_BARS_H
#define ACCEL_REPORT_BARS_H

#include "gen/base/text.h"
#include "gen/report/metrics.h"

/* The numbers of a series by parts of its steps, each the mean of what is in it. */
struct bars {
  double *means;      /* by part; NaN: nothing is in it */
  int parts, wide;    /* a part takes so many columns of text */
  double least, most; /* of the means */
};

/* At most so many columns, over all steps of the metrics. */
struct bars bars_of(struct arena *arena, const struct metrics *metrics, const struct series *series, int columns);

/* Adds one row, of `rows` from the top: a column is filled from below up to its mean, the largest one to the top. With
 * `blocks` in eighths of a row, by U+2581 to U+2588; else by '#' and, for less than a half, '.'. */
void bars_row(struct text *out, const struct bars *bars, int row, int rows, bool blocks);

#endif
