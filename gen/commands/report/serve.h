/* accel-gen report --serve: the page of runs on this machine, made again as they go. */
#ifndef ACCEL_COMMANDS_REPORT_SERVE_H
#define ACCEL_COMMANDS_REPORT_SERVE_H

#include "gen/commands/cli/options.h"
#include "gen/commands/report/page.h"

/* Serves until a signal ends it, which is STATUS_OK. Another status after a message on standard error. */
int report_serve(const struct options *options, const struct page_source *source);

#endif
