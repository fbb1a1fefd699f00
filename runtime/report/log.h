/* What a run logs for people, on standard output: a line of figures each. */
#ifndef RUNTIME_REPORT_LOG_H
#define RUNTIME_REPORT_LOG_H

#include "runtime/base/progress.h"
#include "runtime/report/extras.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The figures of one line. */
struct figures {
  int64_t step, steps;
  double epoch;      /* of training, from 0 */
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

enum log_form {
  LOG_TABLE,
  LOG_QUIET, /* nothing */
  LOG_JSON   /* nothing but what is saved; the figures are a tracker's, which writes them as in metrics.jsonl */
};

struct log {
  enum log_form form;
  struct progress progress; /* at the end of a terminal that is this session's */
  bool has_header;
  bool is_table;   /* rows a second instead of tokens */
  int64_t skipped; /* steps without their update, as was printed last */
};

/* Begins in the form that is set: finds out whether somebody looks at standard output. */
void rt_log_open(struct log *log, bool is_table);

/* Prints a line, the columns' names before the first. Below it are what else waits, in columns of equal width, and what
 * was saved. */
void rt_log_line(struct log *log, const struct figures *figures);

/* Prints that a checkpoint was saved, or is being saved, at a step that has no line. */
void rt_log_saved(struct log *log, int64_t step, const char *path, bool is_saving);

/* Prints a line of the run in words, with `indent` blanks before what continues it. */
void rt_log_text(const struct log *log, int indent, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* On a terminal, renews the progress line, where that is due. */
void rt_log_progress(struct log *log, const struct figures *figures);

#endif
