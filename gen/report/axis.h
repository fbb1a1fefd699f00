/* The axis of a chart: the range of its numbers, and ticks at round ones. */
#ifndef ACCEL_REPORT_AXIS_H
#define ACCEL_REPORT_AXIS_H

#include <stdbool.h>

enum { MOST_TICKS = 16, TICK_LABEL = 32 };

struct tick {
  double value;
  double at; /* of the axis, from 0 to 1 */
  char label[TICK_LABEL];
};

struct chart_axis {
  double least, most; /* least < most */
  bool log;           /* by powers of ten; least > 0 */
  struct tick ticks[MOST_TICKS];
  int n_ticks;
};

/* The axis of finite numbers from `least` to `most`, which may be equal, with some `about` ticks, at most 8. log: its
 * numbers must be above 0. */
struct chart_axis axis_of(double least, double most, int about, bool log);

/* Where a number is on an axis: 0 at its beginning, 1 at its end. */
double axis_at(const struct chart_axis *axis, double number);

/* A number in at most seven characters or so: "0.25", "12k", "1.5M", "1e-4". `unit`: how far apart numbers are that
 * must have different labels; `largest`: the size of the largest one of them, by which all are written alike. */
void axis_label(char label[TICK_LABEL], double number, double unit, double largest);

#endif
