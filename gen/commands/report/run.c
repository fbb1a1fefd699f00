#include "gen/commands/report/run.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "gen/base/file.h"
#include "gen/base/path.h"
#include "gen/base/quantity.h"
#include "gen/base/text.h"
#include "gen/commands/cli/files.h"
#include "gen/spec/restore.h"

void report_note(struct arena *arena, struct report_run *run, const char *text) {
  ARENA_PUSH(arena, run->notes, text);
}

double report_number(const json_t *object, const char *key, double otherwise) {
  const json_t *value = json_object_get(object, key);
  return json_is_number(value) ? json_number_value(value) : otherwise;
}

/* ---- The job ---- */

/* An object of JSON in a file of the run's folder, which the caller owns; NULL: there is none, noted where the file is
 * there. */
static json_t *read_object(struct arena *arena, struct report_run *run, const char *name) {
  enum { MOST = 1 << 24 };
  const char *path = arena_printf(arena, "%s/%s", run->folder, name);
  struct stat status;
  json_error_t error;
  if (stat(path, &status) != 0) return NULL;
  if (!S_ISREG(status.st_mode) || status.st_size > MOST) {
    report_note(arena, run, arena_printf(arena, "%s was not read: it is no file of this kind.", name));
    return NULL;
  }
  size_t length = 0;
  const char *text = read_bytes(arena, path, &length);
  json_t *root = text != NULL ? json_loadb(text, length, JSON_REJECT_DUPLICATES, &error) : NULL;
  if (json_is_object(root)) return root;
  const char *reason = text == NULL ? strerror(errno) : root == NULL ? error.text : "it is no object";
  report_note(arena, run, arena_printf(arena, "%s was not read: %s.", name, reason));
  json_decref(root);
  return NULL;
}

/* The number at the end of a name; -1: it has none. */
static long number_of(const char *name) {
  const char *end = name + strlen(name), *digits = end;
  while (digits > name && digits[-1] >= '0' && digits[-1] <= '9') digits--;
  return digits < end ? strtol(digits, NULL, 10) : -1;
}

/* The job.json of the checkpoint with the largest number among the folders of `folder`, by its name in the run's
 * folder; NULL: there is none. */
static const char *newest_job(struct arena *arena, const struct report_run *run, const char *folder) {
  DIR *handle = opendir(arena_printf(arena, "%s/%s", run->folder, folder));
  const char *newest = NULL;
  long most = -1;
  for (struct dirent *entry; handle != NULL && (entry = readdir(handle)) != NULL;) {
    struct stat status;
    if (number_of(entry->d_name) <= most) continue;
    const char *name = arena_printf(arena, "%s%s/job.json", folder, entry->d_name);
    if (stat(arena_printf(arena, "%s/%s", run->folder, name), &status) != 0) continue;
    most = number_of(entry->d_name);
    newest = name;
  }
  if (handle != NULL) closedir(handle);
  return newest;
}

/* All keys with the defaults of this version where they give the digest of the run's job; else those that are stated.
 */
static void take_job(struct arena *arena, struct report_run *run, const json_t *recorded) {
  const struct stated_keys stated = stated_in_checkpoint(arena, recorded);
  run->digest = stated.digest;
  run->generator = stated.generator;
  const struct job *job = stated.count > 0 ? job_restore(arena, &stated) : NULL;
  run->has_defaults = job != NULL;
  if (job != NULL) {
    run->keys = job_keys(arena, job, &run->n_keys);
    return;
  }
  run->keys = arena_alloc(arena, ((size_t)stated.count + 1) * sizeof *run->keys);
  run->n_keys = stated.count;
  for (int i = 0; i < stated.count; i++)
    run->keys[i] = (struct job_key){.name = stated.items[i].key, .value = stated.items[i].value};
  if (stated.count > 0)
    report_note(
        arena, run,
        "The keys of the job that are at their defaults are not shown: this version has others than the one of the "
        "run.");
}

static void read_job(struct arena *arena, struct report_run *run) {
  run->record = read_object(arena, run, "run.json");
  if (json_is_object(json_object_get(run->record, "keys"))) {
    run->job_file = "run.json";
    take_job(arena, run, run->record);
    return;
  }
  const char *name = newest_job(arena, run, "checkpoints/");
  if (name == NULL) name = newest_job(arena, run, "");
  json_t *recorded = name != NULL ? read_object(arena, run, name) : NULL;
  if (recorded == NULL) {
    report_note(arena, run, "The folder has no run.json and no checkpoint: the job and the machine are unknown.");
    return;
  }
  run->job_file = name;
  take_job(arena, run, recorded);
  json_decref(recorded);
}

/* ---- The metrics ---- */

static const char *lines_text(struct arena *arena, int64_t count, const char *what) {
  return arena_printf(arena, "%s line%s of metrics.jsonl %s", count_text(arena, count), count == 1 ? "" : "s", what);
}

static void note_metrics(struct arena *arena, struct report_run *run) {
  const struct metrics *metrics = &run->metrics;
  if (metrics->cut) report_note(arena, run, "The last line of metrics.jsonl is not whole, as a killed run leaves it.");
  if (metrics->broken > 0)
    report_note(arena, run, lines_text(arena, metrics->broken, "were left out: they are no objects with a step."));
  if (metrics->superseded > 0)
    report_note(arena, run,
                lines_text(arena, metrics->superseded,
                           "were left out: the run went back before them, and has their steps again."));
  if (metrics->left_out > 0)
    report_note(arena, run, arena_printf(arena, "Numbers of more than %d names were left out.", MOST_SERIES));
  for (int i = 0; i < metrics->n_series; i++) {
    const struct series *series = &metrics->series[i];
    if (series->not_finite == 0) continue;
    report_note(arena, run,
                arena_printf(arena, "%s is not finite in %s line%s.", series->name,
                             count_text(arena, series->not_finite), series->not_finite == 1 ? "" : "s"));
  }
}

static const char *read_metrics(struct arena *arena, const char *path, struct report_run *run) {
  if (!metrics_read(arena, path, &run->metrics))
    return arena_printf(arena, "%s: %s", path,
                        errno == ENOENT   ? "is not there: a run writes it into its project folder "
                                            "(checkpoint.project_dir)"
                        : errno == EINVAL ? "is no file"
                                          : strerror(errno));
  const bool any = run->metrics.broken > 0 || run->metrics.cut;
  if (run->metrics.lines == 0)
    return arena_printf(arena, "%s: %s", path,
                        any ? "has no line that is an object with a step, such as {\"step\": 10, \"loss\": 4.5}"
                            : "has no lines: the run has not come to its first one");
  note_metrics(arena, run);
  return NULL;
}

/* Sets the argument and the folder of a run. The path of its metrics. */
static const char *find(struct arena *arena, const char *argument, struct report_run *run) {
  const bool folder = is_folder(argument);
  *run = (struct report_run){.argument = argument, .folder = folder ? argument : folder_of(arena, argument)};
  return folder ? arena_printf(arena, "%s/metrics.jsonl", argument) : argument;
}

const char *report_run_read(struct arena *arena, const char *argument, struct report_run *run, struct inputs *inputs) {
  const char *path = find(arena, argument, run);
  inputs_add(inputs, "metrics of a run", path);
  const char *problem = read_metrics(arena, path, run);
  if (problem != NULL) return problem;
  read_job(arena, run);
  run->audit = read_object(arena, run, "audit.json");
  run->trace = report_trace(arena, run);
  run->events = report_events(arena, run);
  inputs_add(inputs, "the trace of a run", run->trace);
  inputs_add(inputs, "the events of a run", run->events);
  inputs_add(inputs, "the audit of a run", arena_printf(arena, "%s/audit.json", run->folder));
  inputs_add(inputs, "the record of a run", arena_printf(arena, "%s/run.json", run->folder));
  if (run->job_file != NULL)
    inputs_add(inputs, "the job of a run", arena_printf(arena, "%s/%s", run->folder, run->job_file));
  return NULL;
}

void report_run_free(struct report_run *run) {
  json_decref(run->record);
  json_decref(run->audit);
}

/* ---- Whether it is another one ---- */

static void add_state(struct text *out, const char *path) {
  struct stat status;
  if (path == NULL || stat(path, &status) != 0)
    text_puts(out, "-;");
  else
    text_printf(out, "%llu %lld %lld.%09ld;", (unsigned long long)status.st_ino, (long long)status.st_size,
                (long long)status.st_mtim.tv_sec, status.st_mtim.tv_nsec);
}

const char *report_run_state(struct arena *arena, const char *argument) {
  struct report_run run;
  struct text out = text_in(arena);
  add_state(&out, find(arena, argument, &run));
  add_state(&out, arena_printf(arena, "%s/run.json", run.folder));
  add_state(&out, arena_printf(arena, "%s/audit.json", run.folder));
  add_state(&out, report_trace(arena, &run));
  add_state(&out, report_events(arena, &run));
  return text_string(&out);
}
