/* DVCLive: its folder, with a table for each number, the newest numbers, and the keys of the job; dvc.yaml names them
 * for `dvc metrics`, `dvc params` and `dvc plots`. Held against DVCLive 3 and DVC 3. */
#include "runtime/files/files.h"
#include "runtime/files/mapping.h"
#include "runtime/tracking/json.h"
#include "runtime/tracking/series.h"
#include "runtime/tracking/sink.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct dvclive {
  struct series tables;
  char metrics[4096];
  struct bytes newest; /* the content of metrics.json */
};

static bool cut(const uint8_t *bytes, size_t size, int64_t keep, int64_t *whole) {
  *whole = rt_cut_lines(bytes, size, "", keep);
  return true;
}

/* YAML reads a text of JSON as JSON does. */
static void add_param(void *to, const char *name, const char *value) {
  rt_json_text(to, name);
  rt_bytes_print(to, ": ");
  rt_json_value(to, value);
  rt_bytes_print(to, "\n");
}

/* The step of metrics.json; INT64_MAX where it says none. */
static int64_t newest_step(const char *path) {
  enum { MOST = 1 << 20 };
  struct mapping mapping;
  struct problem ignored;
  if (!rt_map(&mapping, path, "", &ignored)) return INT64_MAX;
  json_t *json = mapping.size <= MOST ? json_loadb((const char *)mapping.bytes, mapping.size, 0, NULL) : NULL;
  const json_t *step = json_object_get(json, "step");
  const int64_t found = json_is_integer(step) ? (int64_t)json_integer_value(step) : INT64_MAX;
  json_decref(json);
  rt_unmap(&mapping);
  return found;
}

/* Numbers of a step that the run does not resume from are in no table; the next line writes them again. */
static bool remove_later(const char *path, int64_t keep, struct problem *problem) {
  if (access(path, F_OK) != 0 || newest_step(path) <= keep) return true;
  return unlink(path) == 0 || rt_problem(problem, "%s: cannot be removed: %s", path, strerror(errno));
}

static bool open_files(void *state, const struct tracked *tracked, struct problem *problem) {
  struct dvclive *live = state;
  char all[4096], folder[4096], plots[4096], tables[4096];
  struct bytes params = {0}, names = {0};
  if (!rt_join(all, sizeof all, tracked->folder, "dvclive", problem) ||
      !rt_join(folder, sizeof folder, all, tracked->run_name, problem) ||
      !rt_join(plots, sizeof plots, folder, "plots", problem) ||
      !rt_join(tables, sizeof tables, plots, "metrics", problem) ||
      !rt_join(live->metrics, sizeof live->metrics, folder, "metrics.json", problem) ||
      !remove_later(live->metrics, tracked->keep, problem) ||
      !rt_series_open(&live->tables, tables, ".tsv", tracked->keep, cut, problem))
    return false;
  rt_each_key(tracked, add_param, &params);
  rt_bytes_print(&names, "params:\n- params.yaml\nmetrics:\n- metrics.json\nplots:\n- plots/metrics:\n    x: step\n");
  return rt_replace_in(folder, "params.yaml", &params, problem) && rt_replace_in(folder, "dvc.yaml", &names, problem);
}

static void add_scalars(void *state, int64_t step, double now, const struct scalars *scalars) {
  struct dvclive *live = state;
  (void)now;
  live->newest.count = 0;
  rt_bytes_print(&live->newest, "{");
  for (int i = 0; i < scalars->count; i++) {
    struct bytes row = {0};
    char name[200], header[256];
    rt_plain_name(name, sizeof name, scalars->items[i].name);
    snprintf(header, sizeof header, "step\t%s\n", name);
    rt_bytes_print(&row, "%" PRId64 "\t", step);
    rt_json_number(&row, &scalars->items[i]);
    rt_bytes_print(&row, "\n");
    rt_series_add(&live->tables, name, header, &row);
    rt_json_text(&live->newest, name);
    rt_bytes_print(&live->newest, ": ");
    rt_json_number(&live->newest, &scalars->items[i]);
    rt_bytes_print(&live->newest, ", ");
  }
  rt_bytes_print(&live->newest, "\"step\": %" PRId64 "}\n", step);
}

static bool flush(void *state, struct problem *problem) {
  struct dvclive *live = state;
  struct bytes copy = {.failed = live->newest.failed};
  live->newest.failed = false;
  if (!rt_series_flush(&live->tables, problem)) return false;
  if (live->newest.count == 0) return true;
  rt_bytes_add(&copy, live->newest.data, live->newest.count);
  return rt_replace_file(live->metrics, &copy, problem);
}

static bool close_files(void *state, double now, enum run_end end, struct problem *problem) {
  struct dvclive *live = state;
  (void)now;
  (void)end;
  rt_bytes_free(&live->newest);
  return rt_series_close(&live->tables, problem);
}

const struct accel_sink accel_sink_dvclive = {.name = "dvclive",
                                              .bytes = sizeof(struct dvclive),
                                              .open = open_files,
                                              .cut = cut,
                                              .scalars = add_scalars,
                                              .flush = flush,
                                              .close = close_files};
