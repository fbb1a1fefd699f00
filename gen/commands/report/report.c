/* accel-gen report RUN... -o FILE.html: runs as one page. */
#include <stdio.h>
#include <string.h>

#include "gen/base/embedded.h"
#include "gen/commands/cli/commands.h"
#include "gen/commands/report/memory.h"
#include "runtime/base/terminal.h"

enum { MOST_RUNS = 16 };

/* ---- Names ---- */

/* The last `parts` parts of a path without slashes at its end and metrics.jsonl. */
static const char *end_of(struct arena *arena, const char *path, int parts) {
  static const char file[] = "/metrics.jsonl";
  size_t end = strlen(path), last = strlen(file);
  if (end > last && strcmp(path + end - last, file) == 0) end -= last;
  while (end > 1 && path[end - 1] == '/') end--;
  size_t begin = end;
  for (int i = 0; i < parts && begin > 0; i++) {
    while (begin > 0 && path[begin - 1] == '/') begin--;
    while (begin > 0 && path[begin - 1] != '/') begin--;
  }
  return arena_copy(arena, path + begin, end - begin);
}

static bool is_twice(const struct report_run *runs, int count) {
  for (int i = 0; i < count; i++)
    for (int k = 0; k < i; k++)
      if (strcmp(runs[i].name, runs[k].name) == 0) return true;
  return false;
}

/* As many parts of the paths as it takes to tell the runs apart. */
static void name_runs(struct arena *arena, struct report_run *runs, int count) {
  enum { MOST = 20 };
  for (int parts = 1; parts == 1 || (parts < MOST && is_twice(runs, count)); parts++)
    for (int i = 0; i < count; i++) runs[i].name = end_of(arena, runs[i].argument, parts);
  for (int i = 0; i < count && is_twice(runs, count); i++)
    runs[i].name = arena_printf(arena, "%s (%d)", runs[i].name, i + 1);
}

/* ---- The page ---- */

static struct jinja_value values_of(struct arena *arena, struct report_run *runs, int count) {
  struct jinja_value page = jinja_map(arena);
  jinja_set(arena, page, "script", jinja_string(arena, embedded_source("share/report/page.js")));
  page_add_texts(arena, page, runs, count); /* first, as it adds notes */
  page_add_curves(arena, page, runs, count);
  page_add_norms(arena, page, runs, count);
  page_add_profiles(arena, page, runs, count);
  page_add_audits(arena, page, runs, count);
  page_add_jobs(arena, page, runs, count);
  return page;
}

static int write_page(const struct options *options, struct report_run *runs, int count, struct inputs *inputs) {
  struct jinja_value page = values_of(options->arena, runs, count);
  if (!page_add_memory(options, page, runs, count, inputs)) return STATUS_BAD_JOB;
  return page_write(options, "page.html.j2", page, inputs, options->output);
}

int command_report(const struct options *options) {
  struct arena *arena = options->arena;
  struct inputs inputs = inputs_in(arena);
  const int count = options->n_arguments;
  if (count > MOST_RUNS) {
    rt_print(stderr, "accel-gen report: %d runs are more than a page can show: it has at most %d\n", count, MOST_RUNS);
    return STATUS_BAD_JOB;
  }
  struct report_run *runs = arena_alloc(arena, (size_t)count * sizeof *runs);
  int read = 0;
  for (int i = 0; i < count; i++) read += report_run_read(arena, options->arguments[i], &runs[i], &inputs);
  name_runs(arena, runs, count);
  const int status = read == count ? write_page(options, runs, count, &inputs) : STATUS_CANNOT;
  for (int i = 0; i < count; i++) {
    json_decref(runs[i].record);
    json_decref(runs[i].audit);
  }
  return status;
}
