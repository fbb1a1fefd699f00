#include "gen/commands/report/page.h"

#include <string.h>

#include "gen/base/embedded.h"
#include "gen/base/text.h"
#include "gen/commands/report/limit.h"

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

/* As many parts of the paths as distinguish the runs. */
static void name_runs(struct arena *arena, struct report_run *runs, int count) {
  enum { MOST = 20 };
  for (int parts = 1; parts == 1 || (parts < MOST && is_twice(runs, count)); parts++)
    for (int i = 0; i < count; i++) runs[i].name = end_of(arena, runs[i].argument, parts);
  for (int i = 0; i < count && is_twice(runs, count); i++)
    runs[i].name = arena_printf(arena, "%s (%d)", runs[i].name, i + 1);
}

/* ---- The page ---- */

static struct jinja_value values_of(struct arena *arena, const struct page_source *source, struct report_run *runs) {
  const int count = source->count;
  struct jinja_value page = jinja_map(arena);
  jinja_set(arena, page, "script", jinja_string(arena, embedded_source("share/report/page.js")));
  page_add_texts(arena, page, runs, count); /* first, as it adds notes */
  page_add_curves(arena, page, runs, count);
  page_add_norms(arena, page, runs, count);
  page_add_profiles(arena, page, runs, count);
  page_add_audits(arena, page, runs, count);
  page_add_jobs(arena, page, runs, count);
  page_add_memory(arena, page, runs, count, &source->planned);
  return page;
}

int page_make(struct arena *arena, const struct page_source *source, const char *state, struct inputs *inputs,
              struct jinja_output *output, const char **problems) {
  struct report_run *runs = arena_alloc(arena, (size_t)source->count * sizeof *runs);
  struct text lines = text_in(arena);
  enum status status = STATUS_CANNOT;
  for (int i = 0; i < source->count; i++) {
    const char *problem = report_run_read(arena, source->arguments[i], &runs[i], inputs);
    if (problem != NULL)
      text_printf(&lines, "%s\n", problem);
    else
      report_add_share(arena, &runs[i]);
  }
  name_runs(arena, runs, source->count);
  *problems = text_string(&lines);
  if (lines.length == 0 && page_render(arena, "page.html.j2", values_of(arena, source, runs), state, output))
    status = STATUS_OK;
  for (int i = 0; i < source->count; i++) report_run_free(&runs[i]);
  return status;
}
