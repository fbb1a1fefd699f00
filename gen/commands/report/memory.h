/* The memory of a job's plan as a picture. */
#ifndef ACCEL_COMMANDS_REPORT_MEMORY_H
#define ACCEL_COMMANDS_REPORT_MEMORY_H

#include "gen/commands/cli/options.h"
#include "gen/commands/report/run.h"
#include "gen/commands/report/write.h"
#include "gen/plan/report/occupancy.h"

/* Values for the picture (share/report/memory.html.j2). */
struct jinja_value memory_value(struct arena *arena, const struct occupancy *occupancy);

/* The same of the ranks of a pipeline (stage_occupancies_of), with the schedule's times; none where a step has more
 * actions than a picture can show. */
struct jinja_value memory_of_stages(struct arena *arena, struct program *program);

/* The plan of a run's job. */
struct planned_memory {
  const struct occupancy *occupancy; /* NULL: ranks are stages */
  struct program *program;           /* NULL: there is no job */
  const char *job, *digest;          /* its file, and of what is resolved from it */
};

/* Plans the job of --job, if it is given. False after messages on standard error: the job is wrong. */
bool memory_plan(const struct options *options, struct inputs *inputs, struct planned_memory *planned);

/* "memory" of a page: who has which bytes over a step, and the names of the runs whose job it is. */
void page_add_memory(struct arena *arena, struct jinja_value page, const struct report_run *runs, int count,
                     const struct planned_memory *planned);

#endif
