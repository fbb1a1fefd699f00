/* The page of a comparison. */
#ifndef ACCEL_COMMANDS_REPORT_DIFF_PAGE_H
#define ACCEL_COMMANDS_REPORT_DIFF_PAGE_H

#include "gen/commands/report/write.h"
#include "gen/provenance/compare.h"

/* Writes to options->html what differs: the keys, the figures with bars, and the lines of each function; with
 * options->verbose also those of functions that one side alone has. A status. */
int diff_page_write(const struct options *options, const struct comparison *comparison, const struct inputs *inputs);

#endif
