/* The memory of a job's plan as a picture. */
#ifndef ACCEL_COMMANDS_REPORT_MEMORY_H
#define ACCEL_COMMANDS_REPORT_MEMORY_H

#include "gen/commands/cli/options.h"
#include "gen/commands/report/page.h"
#include "gen/plan/report/occupancy.h"

/* Values for the picture (share/report/memory.html.j2). */
struct jinja_value memory_value(struct arena *arena, const struct occupancy *occupancy);

/* Plans the job of --job and sets "memory" of a page: who has which bytes over a step; none without that option, and
 * where the job's program has no such picture. False after messages on standard error: the job is wrong. */
bool page_add_memory(const struct options *options, struct jinja_value page, const struct report_run *runs, int count,
                     struct inputs *inputs);

#endif
