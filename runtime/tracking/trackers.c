#include "runtime/tracking/trackers.h"

#include "runtime/base/clock.h"
#include "runtime/files/files.h"
#include "runtime/tracking/bytes.h"
#include "runtime/tracking/histogram.h"
#include "runtime/tracking/identity.h"
#include "runtime/tracking/png.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Seconds since 1970. */
static double wall_clock(void) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

void rt_each_key(const struct tracked *tracked, void (*each)(void *to, const char *name, const char *value), void *to) {
  const struct accel_program *program = tracked->program;
  for (int i = 0; i < program->n_keys; i++) each(to, program->keys[i].name, program->keys[i].value);
  for (int i = 0; i < program->n_defaults; i++) each(to, program->defaults[i].name, program->defaults[i].value);
}

/* ---- Opening ---- */

/* The last name of the folder's path: "run" of "out/run/"; "run" also where the path has no name. */
static void name_of(char *name, size_t size, const char *folder) {
  size_t end = strlen(folder), begin;
  while (end > 0 && folder[end - 1] == '/') end--;
  for (begin = end; begin > 0 && folder[begin - 1] != '/';) begin--;
  const size_t length = end - begin < size ? end - begin : size - 1;
  memcpy(name, folder + begin, length);
  name[length] = '\0';
  if (length == 0 || strcmp(name, ".") == 0 || strcmp(name, "..") == 0) memcpy(name, "run", 4);
}

static bool describe(struct tracked *tracked, struct problem *problem) {
  const struct accel_tracking *tracking = &tracked->program->tracking;
  const char *folder = tracking->logging_dir != NULL ? tracking->logging_dir : tracked->project_dir;
  if (strlen(folder) >= sizeof tracked->folder) return rt_problem(problem, "%.200s...: the path is too long", folder);
  memcpy(tracked->folder, folder, strlen(folder) + 1);
  tracked->project = tracking->project != NULL ? tracking->project : tracked->program->name;
  name_of(tracked->run_name, sizeof tracked->run_name,
          tracking->run_name != NULL ? tracking->run_name : tracked->project_dir);
  return rt_identity_find(tracked, problem);
}

/* A process that is killed in between has the id of the run before still, or nothing of it is left. */
static bool identify(struct tracked *tracked, struct problem *problem) {
  const struct accel_sink *const *sinks = tracked->program->tracking.sinks;
  if (!describe(tracked, problem)) return false;
  for (int i = 0; i < MOST_TRACKERS - 1 && sinks[i] != NULL && tracked->previous_id[0] != '\0'; i++)
    if (sinks[i]->remove != NULL && !sinks[i]->remove(tracked, problem)) return false;
  return rt_identity_write(tracked, problem);
}

static bool add(struct trackers *trackers, const struct accel_sink *sink, struct problem *problem) {
  struct tracker *tracker = &trackers->items[trackers->count];
  *tracker = (struct tracker){.sink = sink, .state = calloc(1, sink->bytes)};
  if (tracker->state == NULL) return rt_problem(problem, "no memory for the tracker %s", sink->name);
  trackers->count++;
  return sink->open(tracker->state, &trackers->tracked, problem);
}

bool rt_trackers_open(struct trackers *trackers, const struct accel_program *program, const char *project_dir,
                      int64_t keep, struct problem *problem) {
  const struct accel_sink *const *sinks = program->tracking.sinks;
  *trackers =
      (struct trackers){.tracked = {.program = program, .project_dir = project_dir, .keep = keep, .now = wall_clock()}};
  if (!add(trackers, &rt_sink_jsonl, problem)) return false;
  if (sinks[0] != NULL && !identify(&trackers->tracked, problem)) return false;
  for (int i = 0; i < MOST_TRACKERS - 1 && sinks[i] != NULL; i++)
    if (!add(trackers, sinks[i], problem)) return false;
  return rt_trackers_flush(trackers, problem);
}

/* ---- Events ---- */

/* All of the first `count` are tried, and the first problem is the one that is reported. */
static bool flush(struct trackers *trackers, int count, struct problem *problem) {
  struct problem other;
  bool good = true;
  for (int i = 0; i < count; i++)
    good &= trackers->items[i].sink->flush(trackers->items[i].state, good ? problem : &other);
  return good;
}

bool rt_trackers_flush(struct trackers *trackers, struct problem *problem) {
  const double before = rt_now();
  const bool good = flush(trackers, trackers->count, problem);
  trackers->flushed = rt_now();
  trackers->took = trackers->flushed - before;
  return good;
}

/* metrics.jsonl has each event at once. Files of tools, of which there may be hundreds, wait until writing them is no
 * more than a part in SHARE of the time, so that a line at each step leaves the steps their time. */
static bool flush_due(struct trackers *trackers, struct problem *problem) {
  enum { SHARE = 100 };
  const bool all = rt_now() - trackers->flushed >= SHARE * trackers->took;
  return all ? rt_trackers_flush(trackers, problem) : flush(trackers, trackers->count > 0, problem);
}

bool rt_trackers_figures(struct trackers *trackers, const struct figures *figures, struct problem *problem) {
  const double now = wall_clock();
  if (!rt_scalars_of(&trackers->scalars, figures)) return rt_problem(problem, "no memory for the figures of a line");
  for (int i = 0; i < trackers->count; i++)
    trackers->items[i].sink->scalars(trackers->items[i].state, figures->step, now, &trackers->scalars);
  return flush_due(trackers, problem);
}

void rt_trackers_print(const struct trackers *trackers, int64_t step, FILE *out) {
  struct bytes line = {0};
  rt_jsonl_line(&line, step, &trackers->scalars);
  fwrite(line.data, 1, line.count, out);
  fflush(out);
  rt_bytes_free(&line);
}

bool rt_trackers_text(struct trackers *trackers, int64_t step, const char *name, const char *text,
                      struct problem *problem) {
  const double now = wall_clock();
  for (int i = 0; i < trackers->count; i++) {
    const struct tracker *tracker = &trackers->items[i];
    if (tracker->sink->text != NULL) tracker->sink->text(tracker->state, step, now, name, text);
  }
  return flush_due(trackers, problem);
}

bool rt_trackers_histogram(struct trackers *trackers, int64_t step, const char *name, const float *values, size_t count,
                           struct problem *problem) {
  const double now = wall_clock();
  struct bins bins;
  const struct histogram histogram = rt_histogram_of(&bins, values, count);
  for (int i = 0; i < trackers->count; i++) {
    const struct tracker *tracker = &trackers->items[i];
    if (tracker->sink->histogram != NULL) tracker->sink->histogram(tracker->state, step, now, name, &histogram);
  }
  return flush_due(trackers, problem);
}

bool rt_trackers_picture(struct trackers *trackers, int64_t step, const char *name, struct picture picture,
                         struct problem *problem) {
  const double now = wall_clock();
  struct bytes png = {0};
  rt_png_add(&png, &picture);
  picture.png = png.data;
  picture.png_bytes = png.count;
  for (int i = 0; i < trackers->count && !png.failed; i++) {
    const struct tracker *tracker = &trackers->items[i];
    if (tracker->sink->picture != NULL) tracker->sink->picture(tracker->state, step, now, name, &picture);
  }
  const bool had_memory = !png.failed;
  rt_bytes_free(&png);
  if (!had_memory) return rt_problem(problem, "no memory for the picture '%.100s'", name);
  return flush_due(trackers, problem);
}

bool rt_trackers_close(struct trackers *trackers, enum run_end end, struct problem *problem) {
  const double now = wall_clock();
  struct problem other;
  bool good = rt_trackers_flush(trackers, problem);
  for (int i = 0; i < trackers->count; i++) {
    good &= trackers->items[i].sink->close(trackers->items[i].state, now, end, good ? problem : &other);
    free(trackers->items[i].state);
  }
  rt_scalars_free(&trackers->scalars);
  trackers->count = 0;
  return good;
}

void rt_trackers_fail(struct trackers *trackers) {
  const double now = wall_clock();
  struct problem problem;
  rt_trackers_flush(trackers, &problem);
  for (; trackers->count > 1; trackers->count--) {
    const struct tracker *tracker = &trackers->items[trackers->count - 1];
    tracker->sink->close(tracker->state, now, RUN_FAILED, &problem);
    free(tracker->state);
  }
}

const char *rt_trackers_metrics(const struct trackers *trackers) {
  return trackers->count > 0 ? rt_jsonl_path(trackers->items[0].state) : "";
}

int rt_trackers_metrics_file(const struct trackers *trackers) {
  return trackers->count > 0 ? rt_jsonl_file(trackers->items[0].state) : -1;
}
