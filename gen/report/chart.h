/* Charts: series of several runs over the steps, as paths of SVG in a square of 1000 by 1000, which a page stretches.
 */
#ifndef ACCEL_REPORT_CHART_H
#define ACCEL_REPORT_CHART_H

#include "gen/base/text.h"
#include "gen/report/axis.h"
#include "gen/report/metrics.h"

/* A series of a run. */
struct chart_line {
  const struct metrics *metrics;
  const struct series *series;
  int run;
  bool second; /* drawn in the second of two ways: with dots */
};

struct chart {
  struct chart_line *items;
  int count, capacity;
  struct chart_axis x, y;
  const char *paths; /* the elements inside of the svg element */
};

/* Fills x, y and paths of the lines that a chart has, of which at least one has a finite number. A path has the class
 * "rN" of its run; a band from the least to the largest number of each column is one of class "band", a line through
 * the means one of "line", and points of "dots". */
void chart_draw(struct arena *arena, struct chart *chart);

#endif
