/* MLflow: a store of files, mlruns, with a folder for each experiment and in it one for each run. `mlflow
 * migrate-filestore` takes it into a database. Held against MLflow 3.17. */
#define _XOPEN_SOURCE 700 /* realpath */
#include "runtime/files/files.h"
#include "runtime/tracking/series.h"
#include "runtime/tracking/sink.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum status { STATUS_RUNNING = 1, STATUS_FINISHED = 3, STATUS_FAILED = 4, STATUS_KILLED = 5 };

struct mlflow {
  struct series metrics;
  char folder[4096]; /* of the run */
  char uri[4096];    /* the same, as a URI */
  char experiment[24], id[33], name[256];
  double began;
  struct bytes meta; /* waits to be written */
};

/* Lines are "time value step". */
static bool cut(const uint8_t *bytes, size_t size, int64_t keep, int64_t *whole) {
  size_t at = 0;
  while (at < size) {
    const uint8_t *line = bytes + at, *end = memchr(line, '\n', size - at), *step = end;
    char digits[24];
    if (end == NULL) break;
    while (step > line && step[-1] != ' ') step--;
    snprintf(digits, sizeof digits, "%.*s", (int)(end - step < 20 ? end - step : 20), step);
    if (strtoll(digits, NULL, 10) > keep) break;
    at += (size_t)(end - line) + 1;
  }
  *whole = (int64_t)at;
  return true;
}

/* The number of the experiment, which follows from its name, so that runs of one project share it. FNV-1a. */
static void number_of(char *number, size_t size, const char *name) {
  uint64_t hash = 14695981039346656037u;
  for (const char *c = name; *c != '\0'; c++) hash = (hash ^ (uint8_t)*c) * 1099511628211u;
  snprintf(number, size, "%" PRIu64, 100000000000000000u + hash % 900000000000000000u);
}

/* The folder as a URI, with what is not plain as %XX. */
static bool uri_of(char *uri, size_t size, const char *folder, struct problem *problem) {
  char *whole = realpath(folder, NULL);
  size_t at = 7;
  if (whole == NULL) return rt_problem(problem, "%s: cannot be read: %s", folder, strerror(errno));
  memcpy(uri, "file://", 8);
  for (const unsigned char *c = (const unsigned char *)whole; *c != '\0' && at + 4 < size; c++) {
    const bool plain =
        (*c >= 'a' && *c <= 'z') || (*c >= '0' && *c <= '9') || (*c >= 'A' && *c <= 'Z') || strchr("/-._~", *c) != NULL;
    at += (size_t)snprintf(uri + at, size - at, plain ? "%c" : "%%%02X", *c);
  }
  free(whole);
  return true;
}

/* A text of YAML in quotes. */
static void add_quoted(struct bytes *to, const char *key, const char *text) {
  rt_bytes_print(to, "%s: '", key);
  for (; *text != '\0'; text++) rt_bytes_print(to, *text == '\'' ? "''" : "%c", *text);
  rt_bytes_print(to, "'\n");
}

static int64_t milliseconds(double seconds) {
  return (int64_t)(1000 * seconds);
}

static bool write_experiment(const struct mlflow *mlflow, const struct tracked *tracked, const char *folder,
                             struct problem *problem) {
  struct bytes meta = {0};
  char uri[4096];
  if (!uri_of(uri, sizeof uri, folder, problem)) return false;
  add_quoted(&meta, "artifact_location", uri);
  rt_bytes_print(&meta, "creation_time: %" PRId64 "\n", milliseconds(tracked->began));
  add_quoted(&meta, "experiment_id", mlflow->experiment);
  rt_bytes_print(&meta, "last_update_time: %" PRId64 "\nlifecycle_stage: active\n", milliseconds(tracked->began));
  add_quoted(&meta, "name", tracked->project);
  return rt_replace_in(folder, "meta.yaml", &meta, problem);
}

/* end: seconds since 1970; 0: the run has not ended. */
static void describe(struct mlflow *mlflow, enum status status, double end) {
  struct bytes *meta = &mlflow->meta;
  meta->count = 0;
  rt_bytes_print(meta, "artifact_uri: '%s/artifacts'\n", mlflow->uri);
  if (end > 0)
    rt_bytes_print(meta, "end_time: %" PRId64 "\n", milliseconds(end));
  else
    rt_bytes_print(meta, "end_time: null\n");
  rt_bytes_print(meta, "entry_point_name: ''\n");
  add_quoted(meta, "experiment_id", mlflow->experiment);
  rt_bytes_print(meta, "lifecycle_stage: active\nrun_id: %s\nrun_uuid: %s\n", mlflow->id, mlflow->id);
  add_quoted(meta, "run_name", mlflow->name);
  rt_bytes_print(meta, "source_name: ''\nsource_type: 4\nsource_version: ''\nstart_time: %" PRId64 "\nstatus: %d\n",
                 milliseconds(mlflow->began), (int)status);
  rt_bytes_print(meta, "tags: []\nuser_id: ''\n");
}

struct into {
  const char *folder;
  struct problem *problem;
  bool good;
};

/* A file for each key; MLflow takes values of 6000 bytes. */
static void add_param(void *to, const char *name, const char *value) {
  struct into *into = to;
  struct bytes content = {0};
  char plain[200];
  if (!into->good) return;
  rt_plain_name(plain, sizeof plain, name);
  rt_bytes_print(&content, "%.6000s", value);
  into->good = rt_replace_in(into->folder, plain, &content, into->problem);
}

static bool write_tags(const struct mlflow *mlflow, const struct tracked *tracked, const char *folder,
                       struct problem *problem) {
  struct bytes name = {0}, tags = {0};
  const char *const *words = tracked->program->tracking.tags;
  rt_bytes_print(&name, "%s", mlflow->name);
  if (!rt_replace_in(folder, "mlflow.runName", &name, problem)) return false;
  for (int i = 0; words[i] != NULL; i++) rt_bytes_print(&tags, "%s%s", i > 0 ? ", " : "", words[i]);
  return words[0] == NULL || rt_replace_in(folder, "tags", &tags, problem);
}

/* The folder `name` of the run, made. */
static bool make(const struct mlflow *mlflow, const char *name, char *path, size_t size, struct problem *problem) {
  return rt_join(path, size, mlflow->folder, name, problem) && rt_make_folders(path, problem);
}

static bool write_all(struct mlflow *mlflow, const struct tracked *tracked, struct problem *problem) {
  char params[4096], tags[4096], artifacts[4096], metrics[4096];
  if (!make(mlflow, "params", params, sizeof params, problem) || !make(mlflow, "tags", tags, sizeof tags, problem) ||
      !make(mlflow, "artifacts", artifacts, sizeof artifacts, problem) ||
      !rt_join(metrics, sizeof metrics, mlflow->folder, "metrics", problem) ||
      !rt_series_open(&mlflow->metrics, metrics, "", tracked->keep, cut, problem) ||
      !uri_of(mlflow->uri, sizeof mlflow->uri, mlflow->folder, problem))
    return false;
  struct into into = {.folder = params, .problem = problem, .good = true};
  rt_each_key(tracked, add_param, &into);
  describe(mlflow, STATUS_RUNNING, 0);
  return into.good && write_tags(mlflow, tracked, tags, problem);
}

static bool open_files(void *state, const struct tracked *tracked, struct problem *problem) {
  struct mlflow *mlflow = state;
  char store[4096], experiment[4096];
  mlflow->began = tracked->began;
  memcpy(mlflow->id, tracked->id, sizeof mlflow->id);
  memcpy(mlflow->name, tracked->run_name, sizeof mlflow->name);
  number_of(mlflow->experiment, sizeof mlflow->experiment, tracked->project);
  return rt_join(store, sizeof store, tracked->folder, "mlruns", problem) &&
         rt_join(experiment, sizeof experiment, store, mlflow->experiment, problem) &&
         rt_join(mlflow->folder, sizeof mlflow->folder, experiment, mlflow->id, problem) &&
         rt_make_folders(mlflow->folder, problem) && write_experiment(mlflow, tracked, experiment, problem) &&
         write_all(mlflow, tracked, problem);
}

static void add_scalars(void *state, int64_t step, double now, const struct scalars *scalars) {
  struct mlflow *mlflow = state;
  for (int i = 0; i < scalars->count; i++) {
    const struct scalar *scalar = &scalars->items[i];
    struct bytes line = {0};
    rt_bytes_print(&line, "%" PRId64 " ", milliseconds(now));
    if (isfinite(scalar->value))
      rt_bytes_print(&line, scalar->format, scalar->value);
    else
      rt_bytes_print(&line, "%s", isnan(scalar->value) ? "nan" : scalar->value > 0 ? "inf" : "-inf");
    rt_bytes_print(&line, " %" PRId64 "\n", step);
    rt_series_add(&mlflow->metrics, scalar->name, "", &line);
  }
}

static bool flush(void *state, struct problem *problem) {
  struct mlflow *mlflow = state;
  struct bytes copy = {0};
  if (!rt_series_flush(&mlflow->metrics, problem)) return false;
  if (mlflow->meta.count == 0) return true;
  rt_bytes_add(&copy, mlflow->meta.data, mlflow->meta.count);
  if (!rt_replace_in(mlflow->folder, "meta.yaml", &copy, problem)) return false;
  mlflow->meta.count = 0;
  return true;
}

static bool close_files(void *state, double now, enum run_end end, struct problem *problem) {
  static const enum status of_end[] = {
      [RUN_FINISHED] = STATUS_FINISHED, [RUN_INTERRUPTED] = STATUS_KILLED, [RUN_FAILED] = STATUS_FAILED};
  struct mlflow *mlflow = state;
  describe(mlflow, of_end[end], now);
  bool good = flush(state, problem);
  rt_bytes_free(&mlflow->meta);
  return rt_series_close(&mlflow->metrics, problem) && good;
}

const struct accel_sink accel_sink_mlflow = {.name = "mlflow",
                                             .bytes = sizeof(struct mlflow),
                                             .open = open_files,
                                             .cut = cut,
                                             .scalars = add_scalars,
                                             .flush = flush,
                                             .close = close_files};
