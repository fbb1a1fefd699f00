/* The page of a plan. */
#ifndef ACCEL_COMMANDS_REPORT_PLAN_PAGE_H
#define ACCEL_COMMANDS_REPORT_PLAN_PAGE_H

#include "gen/commands/generate/compilation.h"
#include "gen/commands/report/write.h"

/* Writes what was planned to options->html: the lines of `text` and the object `json`, as the command prints them, and
 * pictures of memory over a step, of the mesh and of the schedule of a pipeline. A status. */
int plan_page_write(const struct compilation *compilation, const char *text, const char *json);

/* "mesh" of a page: the ranks in tables, by their numbers along the axes; none of one rank. */
void page_add_mesh(struct arena *arena, struct jinja_value page, const struct program *program);

/* "schedule" of a page: when each rank of a pipeline runs what; none without one. And "stages": what each has of
 * memory. */
void page_add_schedule(struct arena *arena, struct jinja_value page, struct program *program);

#endif
