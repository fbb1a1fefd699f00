#define _DEFAULT_SOURCE /* usleep */
/* What ranks report of a save to the first one, by files in its folder: a thread in the background has
 * no channel to other ranks. */
#include "runtime/base/clock.h"
#include "runtime/files/mapping.h"
#include "runtime/process/world.h"
#include "runtime/weights/parts.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { EACH_MICROSECONDS = 2000 };

/* The files of a rank's report: its manifest, or what went wrong. */
struct report {
  char manifest[40], problem[40];
};

/* "rank 1 along dp_shard, 0 along pp". */
static void name_writer(const struct accel_program *program, int writer, char *name, size_t size) {
  static const struct {
    enum accel_axis axis;
    const char *name;
  } others[] = {{ACCEL_EP, "ep"}, {ACCEL_PP, "pp"}};
  const int shards = rt_length_along(program, ACCEL_DP_SHARD);
  int at = snprintf(name, size, "rank %d along dp_shard", writer % shards);
  writer /= shards;
  for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
    const int length = rt_length_along(program, others[i].axis);
    if (length > 1) at += snprintf(name + at, size - (size_t)at, ", %d along %s", writer % length, others[i].name);
    writer /= length;
  }
}

static struct report report_of(int writer) {
  struct report report;
  snprintf(report.manifest, sizeof report.manifest, "done-%05d.json", writer + 1);
  snprintf(report.problem, sizeof report.problem, "failed-%05d.txt", writer + 1);
  return report;
}

void rt_parts_report(const char *folder, const struct accel_program *program, const struct manifest *manifest,
                     const struct problem *problem) {
  char path[4096];
  struct problem other;
  struct report report = report_of(rt_parts_writer(program));
  if (problem == NULL &&
      rt_manifest_write(manifest, folder, report.manifest, BY_RENAME, program->generator, program->job_digest, &other))
    return;
  const char *what = problem != NULL ? problem->what : other.what;
  struct problem ignored;
  if (rt_join(path, sizeof path, folder, report.problem, &ignored))
    rt_write_file(path, BY_RENAME, what, strlen(what), NULL, &ignored);
}

/* Reads a rank's manifest, once it is there, and removes it. */
static bool take_manifest(const char *path, struct manifest *manifest, struct problem *problem) {
  struct manifest reported;
  struct mapping mapping;
  if (!rt_map(&mapping, path, "", problem)) return false;
  bool good = rt_manifest_read(&reported, path, (const char *)mapping.bytes, mapping.size, problem);
  rt_unmap(&mapping);
  if (!good) return false;
  for (int i = 0; i < reported.count && good; i++)
    good = rt_manifest_add(manifest, reported.files[i].name, reported.files[i].sum, problem);
  rt_manifest_free(&reported);
  if (good && unlink(path) != 0) return rt_problem(problem, "%s: cannot be removed: %s", path, strerror(errno));
  return good;
}

static bool take_problem(const char *path, const char *writer, struct problem *problem) {
  struct mapping mapping;
  struct problem ignored;
  rt_problem(problem, "%s could not save", writer);
  if (!rt_map(&mapping, path, "", &ignored)) return false;
  rt_problem(problem, "%.*s (%s)", (int)(mapping.size < 900 ? mapping.size : 900), (const char *)mapping.bytes, writer);
  rt_unmap(&mapping);
  return false;
}

/* Whether a rank has reported before `end`. */
static bool await_one(const char *folder, const struct accel_program *program, int writer, double end,
                      struct manifest *manifest, struct problem *problem) {
  char good[4096], bad[4096], name[80];
  struct report report = report_of(writer);
  name_writer(program, writer, name, sizeof name);
  if (!rt_join(good, sizeof good, folder, report.manifest, problem) ||
      !rt_join(bad, sizeof bad, folder, report.problem, problem))
    return false;
  for (;;) {
    if (access(good, F_OK) == 0) return take_manifest(good, manifest, problem);
    if (access(bad, F_OK) == 0) return take_problem(bad, name, problem);
    if (rt_now() > end) break;
    usleep(EACH_MICROSECONDS);
  }
  rt_problem(problem, "%s: %s has not written its part within %d s", folder, name, program->timeout);
  return rt_help(problem, "let checkpoint.project_dir be a folder that all ranks see, or use state_dict_type: "
                          "full_state_dict, which rank 0 writes");
}

bool rt_parts_await(const char *folder, const struct accel_program *program, struct manifest *manifest,
                    struct problem *problem) {
  double end = rt_now() + program->timeout;
  struct problem later;
  bool good = true;
  for (int i = 1; i < rt_parts_writers(program); i++)
    good = await_one(folder, program, i, end, manifest, good ? problem : &later) && good;
  return good;
}
