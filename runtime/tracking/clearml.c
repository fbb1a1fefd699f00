/* ClearML: the folder of an offline session, which Task.import_offline_session reads: task.json has the task and the
 * keys of the job, metrics.jsonl the events, a list of them for each line of the log. Held against clearml 2.1. */
#include "runtime/files/files.h"
#include "runtime/tracking/journal.h"
#include "runtime/tracking/json.h"
#include "runtime/tracking/series.h"
#include "runtime/tracking/sink.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

struct clearml {
  struct journal journal;
  char task[48];
};

static const char before_step[] = "[{\"iter\": ";

static bool cut(const uint8_t *bytes, size_t size, int64_t keep, int64_t *whole) {
  *whole = rt_cut_lines(bytes, size, before_step, keep);
  return true;
}

/* ---- The task ---- */

static void add_key(void *to, const char *name, const char *value) {
  struct bytes *text = to;
  rt_json_text(text, name);
  rt_bytes_print(text, ": {\"section\": \"job\", \"name\": ");
  rt_json_text(text, name);
  rt_bytes_print(text, ", \"value\": ");
  rt_json_text(text, value);
  rt_bytes_print(text, "}, ");
}

static bool write_task(const struct clearml *clearml, const struct tracked *tracked, const char *folder,
                       struct problem *problem) {
  struct bytes text = {0};
  rt_bytes_print(&text, "{\"id\": \"%s\", \"type\": \"training\", \"name\": ", clearml->task);
  rt_json_text(&text, tracked->run_name);
  rt_bytes_print(&text, ", \"project_name\": ");
  rt_json_text(&text, tracked->project);
  rt_bytes_print(&text, ", \"tags\": [");
  for (int i = 0; tracked->program->tracking.tags[i] != NULL; i++) {
    rt_bytes_print(&text, i > 0 ? ", " : "");
    rt_json_text(&text, tracked->program->tracking.tags[i]);
  }
  rt_bytes_print(&text, "], \"hyperparams\": {\"job\": {");
  rt_each_key(tracked, add_key, &text);
  if (text.count > 2 && text.data[text.count - 1] == ' ') text.count -= 2;
  rt_bytes_print(&text, "}}, \"execution\": {\"parameters\": {}, \"artifacts\": []}, \"offline_output_models\": []}\n");
  return rt_replace_in(folder, "task.json", &text, problem);
}

static bool open_files(void *state, const struct tracked *tracked, struct problem *problem) {
  struct clearml *clearml = state;
  char all[4096], folder[4096], path[4096];
  snprintf(clearml->task, sizeof clearml->task, "offline-%s", tracked->id);
  return rt_join(all, sizeof all, tracked->folder, "clearml", problem) &&
         rt_join(folder, sizeof folder, all, clearml->task, problem) && rt_make_folders(folder, problem) &&
         write_task(clearml, tracked, folder, problem) &&
         rt_join(path, sizeof path, folder, "metrics.jsonl", problem) &&
         rt_journal_open(&clearml->journal, path, tracked->keep, cut, problem);
}

/* ---- Events ---- */

/* Begins an event. "a/b" is the variant b of the metric a, and a name without '/' the variant of its own. */
static void begin_event(struct bytes *to, const struct clearml *clearml, int64_t step, double now, const char *type,
                        const char *name) {
  const char *slash = strchr(name, '/'), *variant = slash != NULL ? slash + 1 : name;
  char metric[512];
  snprintf(metric, sizeof metric, "%.*s", (int)(slash != NULL ? slash - name : (ptrdiff_t)strlen(name)), name);
  rt_bytes_print(
      to, "{\"iter\": %" PRId64 ", \"timestamp\": %" PRId64 ", \"type\": \"%s\", \"task\": \"%s\", \"metric\": ", step,
      (int64_t)(1000 * now), type, clearml->task);
  rt_json_text(to, metric);
  rt_bytes_print(to, ", \"variant\": ");
  rt_json_text(to, variant);
}

/* ClearML has no number that is not finite. */
static void add_scalars(void *state, int64_t step, double now, const struct scalars *scalars) {
  struct clearml *clearml = state;
  struct bytes line = {0};
  rt_bytes_print(&line, "[");
  for (int i = 0; i < scalars->count; i++) {
    if (!isfinite(scalars->items[i].value)) continue;
    if (line.count > 1) rt_bytes_print(&line, ", ");
    begin_event(&line, clearml, step, now, "training_stats_scalar", scalars->items[i].name);
    rt_bytes_print(&line, ", \"value\": ");
    rt_json_number(&line, &scalars->items[i]);
    rt_bytes_print(&line, "}");
  }
  const bool empty = line.count <= 1;
  rt_bytes_print(&line, "]\n");
  if (empty)
    rt_bytes_free(&line);
  else
    rt_journal_add(&clearml->journal, &line);
}

/* A picture of bars, which Plotly draws from JSON in a text of JSON. */
static void add_histogram(void *state, int64_t step, double now, const char *name, const struct histogram *histogram) {
  struct clearml *clearml = state;
  struct bytes line = {0}, plot = {0};
  double begin = histogram->least;
  rt_bytes_print(&plot, "{\"data\": [{\"type\": \"bar\", \"name\": ");
  rt_json_text(&plot, name);
  rt_bytes_print(&plot, ", \"x\": [");
  for (size_t i = 0; i < histogram->count; begin = histogram->limits[i++])
    rt_bytes_print(&plot, "%s%.9g", i > 0 ? ", " : "", 0.5 * (begin + histogram->limits[i]));
  rt_bytes_print(&plot, "], \"y\": [");
  for (size_t i = 0; i < histogram->count; i++)
    rt_bytes_print(&plot, "%s%.9g", i > 0 ? ", " : "", histogram->counts[i]);
  rt_bytes_print(&plot, "]}], \"layout\": {\"bargap\": 0, \"title\": ");
  rt_json_text(&plot, name);
  rt_bytes_print(&plot, "}}");
  rt_bytes_add(&plot, "", 1);
  rt_bytes_print(&line, "[");
  begin_event(&line, clearml, step, now, "plot", name);
  rt_bytes_print(&line, ", \"plot_str\": ");
  if (!plot.failed) rt_json_text(&line, (const char *)plot.data);
  rt_bytes_print(&line, "}]\n");
  line.failed |= plot.failed;
  rt_bytes_free(&plot);
  rt_journal_add(&clearml->journal, &line);
}

static bool flush(void *state, struct problem *problem) {
  return rt_journal_flush(&((struct clearml *)state)->journal, problem);
}

/* The end of a run is not in a session: who imports it has the task completed. */
static bool close_files(void *state, double now, enum run_end end, struct problem *problem) {
  (void)now;
  (void)end;
  return rt_journal_close(&((struct clearml *)state)->journal, problem);
}

const struct accel_sink accel_sink_clearml = {.name = "clearml",
                                              .bytes = sizeof(struct clearml),
                                              .open = open_files,
                                              .cut = cut,
                                              .scalars = add_scalars,
                                              .histogram = add_histogram,
                                              .flush = flush,
                                              .close = close_files};
