/* Rows and their labels as arrays. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gen/commands/data/labelled_parts.h"
#include "gen/commands/data/npz.h"
#include "runtime/base/terminal.h"

struct arrays {
  const struct labelling *what;
  const struct text_rows *rows;
  const struct labels *labels;
  const struct row_log *log;
  int32_t *sorted; /* the final number of each label */
};

/* ---- The texts ---- */

/* Where the tokens of a row begin, after padding on its left. */
static size_t first_of(const struct arrays *of, const struct row *row) {
  return of->rows->pads_left ? (size_t)of->what->length - row->n_ids : 0;
}

static void fill_ids(const void *context, int64_t number, void *out) {
  const struct arrays *of = context;
  const struct row row = row_log_at(of->log, number);
  uint32_t *ids = out;
  for (int64_t i = 0; i < of->what->length; i++) ids[i] = of->rows->pad;
  memcpy(ids + first_of(of, &row), row.ids, row.n_ids * sizeof *ids);
}

static void fill_mask(const void *context, int64_t number, void *out) {
  const struct arrays *of = context;
  const struct row row = row_log_at(of->log, number);
  memset(out, 0, (size_t)of->what->length);
  memset((char *)out + first_of(of, &row), 1, row.n_ids);
}

static void fill_segments(const void *context, int64_t number, void *out) {
  const struct arrays *of = context;
  const struct row row = row_log_at(of->log, number);
  memset(out, 0, (size_t)of->what->length);
  memcpy((char *)out + first_of(of, &row), row.segments, row.n_ids);
}

/* ---- The labels ---- */

static void fill_class(const void *context, int64_t number, void *out) {
  const struct arrays *of = context;
  memcpy(out, &of->sorted[row_log_at(of->log, number).targets[0]], sizeof(int32_t));
}

static void fill_list(const void *context, int64_t number, void *out) {
  const struct arrays *of = context;
  const struct row row = row_log_at(of->log, number);
  float *values = out;
  memset(out, 0, (size_t)labels_count(of->labels) * sizeof *values);
  for (uint32_t i = 0; i < row.n_targets; i++) values[of->sorted[row.targets[i]]] = 1;
}

static void fill_number(const void *context, int64_t number, void *out) {
  memcpy(out, row_log_at(((const struct arrays *)context)->log, number).targets, sizeof(float));
}

/* Of each token; padding has none. */
static void fill_tokens(const void *context, int64_t number, void *out) {
  const struct arrays *of = context;
  const struct row row = row_log_at(of->log, number);
  const size_t first = first_of(of, &row);
  int32_t *labels = out;
  for (int64_t i = 0; i < of->what->length; i++) labels[i] = NO_LABEL;
  for (uint32_t i = 0; i < row.n_targets; i++)
    labels[first + i] = row.targets[i] >= 0 ? of->sorted[row.targets[i]] : NO_LABEL;
}

static void fill_span(const void *context, int64_t number, void *out) {
  memcpy(out, row_log_at(((const struct arrays *)context)->log, number).targets, 2 * sizeof(int32_t));
}

/* What a task has of labels. */
static const struct task_labels {
  const char *problem_type; /* as transformers' configurations name it */
  void (*fill)(const void *arrays, int64_t row, void *out);
  const char *dtype;
} tasks[] = {[TASK_CLASSIFICATION] = {"single_label_classification", fill_class, "<i4"},
             [TASK_MULTI_LABEL] = {"multi_label_classification", fill_list, "<f4"},
             [TASK_REGRESSION] = {"regression", fill_number, "<f4"},
             [TASK_TOKENS] = {NULL, fill_tokens, "<i4"},
             [TASK_SPANS] = {NULL, fill_span, "<i4"}};

/* Elements of a row's labels; 0: it is one. */
static int64_t columns_of(const struct labelling *what, const struct labels *labels) {
  switch (what->task) {
  case TASK_MULTI_LABEL:
    return labels_count(labels);
  case TASK_TOKENS:
    return what->length;
  case TASK_SPANS:
    return 2;
  default:
    return 0;
  }
}

/* ---- */

static void report(const struct labelling *what, const struct text_rows *rows, const struct labels *labels,
                   int64_t count, int64_t records) {
  char second[64], named[4200] = "";
  if (what->quiet) return;
  if (what->task == TASK_SPANS)
    snprintf(second, sizeof second, "windows of %" PRId64 " contexts", records);
  else
    snprintf(second, sizeof second, "%" PRId64 " shortened", rows->shortened);
  if (labels != NULL)
    snprintf(named, sizeof named, "; %" PRId64 " labels in %.4000s", (int64_t)labels_count(labels), what->names);
  rt_print(stdout, "%s: %" PRId64 " rows of %" PRId64 " tokens, %s%s\n", what->output, count, what->length, second,
           named);
}

bool labelled_write_arrays(const struct labelling *what, const struct text_rows *rows, struct labels *labels,
                           const struct row_log *log, int64_t records, struct problem *problem) {
  const struct task_labels *task = &tasks[what->task];
  const struct labels *named = what->names != NULL && what->task != TASK_REGRESSION ? labels : NULL;
  struct arrays of = {what, rows, labels, log, labels_sort(labels)};
  if (of.sorted == NULL) return rt_problem(problem, "no memory for the labels");
  const struct npz_array arrays[] = {
      {"input_ids", "<i4", 4, log->rows, what->length, fill_ids, &of, 0},
      {"attention_mask", "|u1", 1, log->rows, what->length, fill_mask, &of, 0},
      {"token_type_ids", "|u1", 1, log->rows, what->length, fill_segments, &of, 0},
      {"labels", task->dtype, 4, log->rows, columns_of(what, labels), task->fill, &of, 0}};
  /* The archive comes last: where it is, its names are, too. */
  bool good = (what->names == NULL || labels_write(named, what->names, task->problem_type, problem)) &&
              npz_write(what->output, arrays, 4, problem);
  free(of.sorted);
  if (good) report(what, rows, named, log->rows, records);
  return good;
}
