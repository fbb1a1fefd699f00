/* What a run logs: lines for people on standard output, metrics.jsonl for programs. */
#ifndef RUNTIME_REPORT_LOG_H
#define RUNTIME_REPORT_LOG_H

#include "runtime/base/problem.h"
#include "runtime/report/extras.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The figures of one line. */
struct figures {
  int64_t step, steps;
  double loss_scale; /* 0: there is none */
  int64_t skipped;   /* steps without their update, from the start of the run */
  double loss, lr, grad_norm;
  bool has_eval;
  double eval_loss;
  const struct extras *extras; /* those that wait are logged; NULL: none */
  double tokens_per_s, step_ms;
  double input_wait_ms; /* of a step: what it took to get its batches */
  double peak_mib;      /* the most memory that this process had at once; 0: not known */
  double left_s;        /* to the end of the run */
  double first_step_s;  /* from the process's start to the end of its first step; negative: logged before */
  double weights_s;     /* of that, drawing or reading the weights */
  const char *saved;    /* a path when something is saved; else NULL */
  bool is_saving;       /* it is not whole yet */
  double save_stall_ms; /* that saves since the last line kept steps waiting */
  bool stopped_early;   /* this line is the last one */
};

struct log {
  bool terminal;     /* standard output is this session's: a progress line is at its end */
  bool has_progress; /* and is there now */
  bool has_header;
  bool is_table; /* rows a second instead of tokens */
  char metrics_path[4096];
  int metrics;   /* its descriptor */
  int64_t whole; /* its bytes: whole lines */
  char *waiting; /* lines that it does not have yet, as the disk refused them */
  size_t n_waiting;
};

/* Opens metrics.jsonl in `folder`. Of its lines, those up to the first one of a step above `keep` stay; -1:
 * none. */
bool rt_log_open(struct log *log, const char *folder, bool is_table, int64_t keep, struct problem *problem);

/* Writes the lines that wait. */
bool rt_log_flush(struct log *log, struct problem *problem);

/* Adds a line to metrics.jsonl. When that fails, the line waits and goes out with the next one. */
bool rt_log_metrics(struct log *log, const struct figures *figures, struct problem *problem);

/* Prints a line, the columns' names before the first. */
void rt_log_line(struct log *log, const struct figures *figures);

/* Prints that a checkpoint was saved, or is being saved, at a step that has no line. */
void rt_log_saved(struct log *log, int64_t step, const char *path, bool is_saving);

/* On a terminal, renews the progress line. */
void rt_log_progress(struct log *log, const struct figures *figures);

/* Removes the progress line, before something else is printed. */
void rt_log_clear(struct log *log);

bool rt_log_close(struct log *log, struct problem *problem);

/* Writes one object of metrics.jsonl, with its line end. A figure that is not finite is null, for JSON has no other. */
void rt_metrics_text(FILE *out, const struct figures *figures);

#endif
