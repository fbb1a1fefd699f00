/* What one tracker is to the stream of a run's events (trackers.h): functions that add events to its files. They only
 * add to what waits; flush writes it. A sink leaves out what its tool has no form for. */
#ifndef RUNTIME_TRACKING_SINK_H
#define RUNTIME_TRACKING_SINK_H

#include "include/accel/program.h"
#include "runtime/base/problem.h"
#include "runtime/report/scalars.h"

/* What a sink knows of the run. All is the stream's. */
struct tracked {
  const struct accel_program *program;
  const char *project_dir;
  char folder[4096];            /* tracking.logging_dir, or the project folder */
  char run_name[256];           /* tracking.run_name, or the name of the project folder */
  const char *project;          /* tracking.project, or the model's name */
  char id[33], previous_id[33]; /* hexadecimal digits, drawn when the run began; of the run that it replaces, or "" */
  int64_t keep;                 /* the step that the run resumes from; -1: it begins */
  double began, now;            /* seconds since 1970: of the first process of the run, and of this one */
};

/* Counts of numbers in `count` ranges: that of range i ends with limits[i], and the first one begins at `least`. */
struct histogram {
  double least, most, total, sum, sum_of_squares;
  const double *limits, *counts;
  size_t count;
};

/* Pixels of 8 bits, row after row: 1 (grey), 3 (RGB) or 4 (RGBA) of each. */
struct picture {
  const uint8_t *pixels, *png; /* png: the same as a file of PNG */
  size_t png_bytes;
  int width, height, channels;
};

enum run_end { RUN_FINISHED, RUN_INTERRUPTED, RUN_FAILED };

struct accel_sink {
  const char *name;
  size_t bytes; /* of its state, zero at first */
  /* Removes files of the run that this one replaces which would be taken for its own; NULL: there are none. */
  bool (*remove)(const struct tracked *tracked, struct problem *problem);
  /* Makes the files, or opens them where the run resumes: then nothing of a step above tracked->keep stays. */
  bool (*open)(void *state, const struct tracked *tracked, struct problem *problem);
  /* Where a file of it that a run continues is cut (journal_cut in journal.h). */
  bool (*cut)(const uint8_t *bytes, size_t size, int64_t keep, int64_t *whole);
  void (*scalars)(void *state, int64_t step, double now, const struct scalars *scalars);
  void (*histogram)(void *state, int64_t step, double now, const char *name, const struct histogram *histogram);
  void (*text)(void *state, int64_t step, double now, const char *name, const char *text);
  void (*picture)(void *state, int64_t step, double now, const char *name, const struct picture *picture);
  bool (*flush)(void *state, struct problem *problem);
  /* The last event, after which nothing is added: writes it, closes the files and frees the state's memory. */
  bool (*close)(void *state, double now, enum run_end end, struct problem *problem);
};

/* The numbers of metrics.jsonl, which every run has: a text of JSON a line, in which what is not finite is null. */
extern const struct accel_sink rt_sink_jsonl;

/* A line of it. */
struct bytes;
void rt_jsonl_line(struct bytes *line, int64_t step, const struct scalars *scalars);

/* Its file and descriptor, which a checkpoint waits for. */
const char *rt_jsonl_path(const void *state);
int rt_jsonl_file(const void *state);

/* Calls `each` with all keys of the job and their values, in the order of the schema: those that the job states, then
 * the defaults. */
void rt_each_key(const struct tracked *tracked, void (*each)(void *to, const char *name, const char *value), void *to);

#endif
