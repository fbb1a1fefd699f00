/* The page of a report: values for share/report/page.html.j2. */
#ifndef ACCEL_COMMANDS_REPORT_PAGE_H
#define ACCEL_COMMANDS_REPORT_PAGE_H

#include "gen/commands/report/memory.h"
#include "gen/commands/report/run.h"
#include "gen/commands/report/write.h"

/* What a page is of. */
struct page_source {
  const char **arguments; /* the runs */
  int count;
  struct planned_memory planned;
};

/* Makes the page of runs, and adds what it read to `inputs`. `state`: as page_render has it. A status; where runs
 * have no metrics, *problems has a line for each. */
int page_make(struct arena *arena, const struct page_source *source, const char *state, struct inputs *inputs,
              struct jinja_output *output, const char **problems);

/* Of all runs: "runs", "figures", "charts", "hidden_charts", "numbers" and "data", which is JSON. */
void page_add_curves(struct arena *arena, struct jinja_value page, const struct report_run *runs, int count);

/* "differences", "keys" and "machine", each a list of rows with a value for each run. */
void page_add_jobs(struct arena *arena, struct jinja_value page, const struct report_run *runs, int count);

/* "norms": a picture for each run that logged the norm of each parameter's gradient. */
void page_add_norms(struct arena *arena, struct jinja_value page, const struct report_run *runs, int count);

/* "profiles": the kinds of kernels of each run that left a trace. */
void page_add_profiles(struct arena *arena, struct jinja_value page, const struct report_run *runs, int count);

/* "texts": of each run and each name under which it logged some. What was not read is noted. */
void page_add_texts(struct arena *arena, struct jinja_value page, struct report_run *runs, int count);

/* "audits": of each run with an audit.json. */
void page_add_audits(struct arena *arena, struct jinja_value page, const struct report_run *runs, int count);

#endif
