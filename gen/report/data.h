/* The numbers of a report as JSON inside of a page. */
#ifndef ACCEL_REPORT_DATA_H
#define ACCEL_REPORT_DATA_H

#include "gen/base/text.h"
#include "gen/report/metrics.h"

/* A copy of a text in which bytes that are no UTF-8, and control characters, are '?'. */
const char *data_clean(struct arena *arena, const char *text);

/* Adds a text in quotes, of which nothing ends a script element; bytes that are no UTF-8 become '?'. */
void data_text(struct text *out, const char *text);

/* Adds a number with as many digits as it takes to read it back; null of one that is not finite. */
void data_number(struct text *out, double number);

/* Adds the columns and the series for which `wanted` says so:
 *   "first": [...], "last": [...], "lines": [...], "seconds": [...],
 *   "series": {NAME: {"mean": [...], "least": [...], "most": [...]}}
 * A column without a number has null. Without "first" and "lines" each column is one line, without "least" and "most"
 * so is each number, and without "seconds" no time is known. */
void data_metrics(struct text *out, const struct metrics *metrics, bool (*wanted)(const char *name));

#endif
