#include "runtime/run/eval_batches.h"

#include "include/accel/collectives.h"
#include "runtime/base/clock.h"
#include "runtime/base/digits.h"
#include "runtime/base/progress.h"
#include "runtime/process/fail.h"
#include "runtime/process/world.h"
#include "runtime/report/score.h"
#include "runtime/run/run.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A sum of losses, each times what it is a mean over, and the sum of the latter: in this order, as they are added up.
 */
enum { LOSS, COUNT, SUMS };

/* The evaluation at hand. */
static struct {
  bool together;        /* all ranks have as many batches */
  bool by_tree;         /* sums over ranks have the order of the tree */
  int64_t n_parts;      /* of this rank */
  double (*sums)[SUMS]; /* of each */
  struct score score;
  const struct accel_program *program;
  struct progress progress;
  int64_t batches, done; /* of this rank */
} evaluation;

/* ---- Which samples ---- */

static int64_t batch_size(const struct accel_run *run) {
  return run->program->eval_batch_size > 0 ? run->program->eval_batch_size : run->program->batch_size;
}

int64_t rt_eval_samples(const struct accel_run *run) {
  return run->input.data.split[ACCEL_EVAL].mixture.samples;
}

/* Parts of all ranks and of their devices. */
static int64_t all_parts(const struct accel_run *run) {
  return run->program->round > 0 ? run->program->round : rt_data_batches(run->program);
}

static int64_t own_parts(const struct accel_run *run) {
  return all_parts(run) / rt_data_ranks(run->program);
}

/* The number of this rank's part `part` among all. */
static int64_t part_number(const struct accel_run *run, int64_t part) {
  return part * rt_data_ranks(run->program) + accel_rank(run);
}

static int64_t quotient_up(int64_t a, int64_t b) {
  return a / b + (a % b != 0);
}

/* Batches of all parts; without a tree eval_iters is the number of each part's. */
static int64_t all_batches(const struct accel_run *run) {
  const struct accel_program *program = run->program;
  if (program->eval_iters > 0) return program->eval_iters * (program->round > 0 ? 1 : rt_data_batches(program));
  return quotient_up(rt_eval_samples(run), batch_size(run));
}

/* Where a part of all samples begins, in whole batches. */
static int64_t part_begin(const struct accel_run *run, int64_t number) {
  int64_t batch = batch_size(run), first = all_batches(run) * number / all_parts(run) * batch;
  int64_t samples = rt_eval_samples(run);
  return first < samples ? first : samples;
}

/* Batches of a part. Of all samples, one more measures copies. */
static int64_t batches_of(const struct accel_run *run, int64_t number) {
  int64_t all = all_batches(run), parts = all_parts(run), batch = batch_size(run);
  bool fixed = run->program->eval_iters > 0;
  if (evaluation.together) return quotient_up(all, parts) + !fixed;
  if (fixed) return all > number ? quotient_up(all - number, parts) : 0;
  int64_t samples = part_begin(run, number + 1) - part_begin(run, number);
  return samples / batch + 2 * (samples % batch != 0);
}

/* Batch `i` of a part, where the evaluation has so many batches: every n-th of them. */
static struct eval_batch one_of_many(const struct accel_run *run, int64_t number, int64_t i) {
  int64_t batch = batch_size(run), at = number + i * all_parts(run);
  if (at >= all_batches(run)) return (struct eval_batch){.taken = batch};
  return (struct eval_batch){.first = at * batch, .taken = batch, .weight = 1.0};
}

/* Batch `i` of a part, where it sees all samples once. */
static struct eval_batch one_of_all(const struct accel_run *run, int64_t number, int64_t i) {
  int64_t batch = batch_size(run), begin = part_begin(run, number), end = part_begin(run, number + 1);
  int64_t first = begin + i * batch, left = end - first, rest = (end - begin) % batch;
  if (left > 0) return (struct eval_batch){.first = first, .taken = left < batch ? left : batch, .weight = 1.0};
  if (rest == 0 || i + 1 < batches_of(run, number)) return (struct eval_batch){.taken = 1};
  return (struct eval_batch){.first = end - 1, .taken = 1, .weight = -(double)(batch - rest) / (double)batch};
}

struct eval_batch rt_eval_batch(const struct accel_run *run, int64_t i) {
  int64_t part = 0;
  while (i >= batches_of(run, part_number(run, part)) && part + 1 < own_parts(run))
    i -= batches_of(run, part_number(run, part++));
  struct eval_batch found = run->program->eval_iters > 0 ? one_of_many(run, part_number(run, part), i)
                                                         : one_of_all(run, part_number(run, part), i);
  found.part = part;
  return found;
}

int64_t accel_eval_number(const struct accel_run *run, int64_t i) {
  return rt_eval_batch(run, i).first / batch_size(run);
}

/* ---- Their losses ---- */

static _Noreturn void fail_memory(void) {
  struct problem problem;
  rt_problem(&problem, "no memory for an evaluation");
  rt_fail(&problem, 1);
}

static void *zeros(size_t count, size_t size) {
  void *memory = calloc(count > 0 ? count : 1, size);
  if (memory != NULL) return memory;
  fail_memory();
}

static int64_t begin(const struct accel_run *run, bool together) {
  int64_t batches = 0;
  if (evaluation.sums == NULL) {
    evaluation.sums = zeros((size_t)own_parts(run), sizeof *evaluation.sums);
    evaluation.program = run->program;
    evaluation.score.kind = run->program->predicted;
    evaluation.score.n_classes = run->program->predicted_classes;
    evaluation.score.classes = zeros((size_t)evaluation.score.n_classes, sizeof *evaluation.score.classes);
  }
  evaluation.together = together;
  evaluation.by_tree = run->program->round > 0;
  evaluation.n_parts = own_parts(run);
  memset(evaluation.sums, 0, (size_t)evaluation.n_parts * sizeof *evaluation.sums);
  rt_score_clear(&evaluation.score);
  for (int64_t part = 0; part < evaluation.n_parts; part++) batches += batches_of(run, part_number(run, part));
  evaluation.progress = rt_progress_begin(rt_is_main() ? stdout : NULL, "evaluates", 0, 0);
  evaluation.batches = batches;
  evaluation.done = 0;
  return batches;
}

int64_t accel_eval_begin(struct accel_run *run) {
  return begin(run, false);
}

int64_t accel_eval_begin_together(struct accel_run *run) {
  return begin(run, true);
}

/* On a terminal, how far the evaluation is. */
static void show_progress(void) {
  char text[64], left[48];
  const int64_t done = ++evaluation.done;
  if (!rt_progress_is_due(&evaluation.progress)) return;
  const double a_batch = (rt_now() - evaluation.progress.began) / (double)done;
  snprintf(text, sizeof text, "evaluates: batch %" PRId64 " of %" PRId64, done, evaluation.batches);
  rt_duration(left, sizeof left - sizeof " left", a_batch * (double)(evaluation.batches - done));
  strcat(left, " left");
  rt_progress_show(&evaluation.progress, (const char *const[]){text, left}, 2);
}

void accel_eval_add(const struct accel_run *run, int64_t i, double loss, double count) {
  show_progress();
  struct eval_batch batch = rt_eval_batch(run, i);
  double counted = count * batch.weight;
  if (counted == 0.0) return; /* the mean over nothing is not a number */
  evaluation.sums[batch.part][LOSS] += counted * loss;
  evaluation.sums[batch.part][COUNT] += counted;
}

void accel_eval_score(const struct accel_run *run, int64_t i, const void *predictions, const void *labels,
                      int64_t count) {
  struct eval_batch batch = rt_eval_batch(run, i);
  int64_t width = count / batch_size(run);
  if (batch.weight > 0.0 && !rt_score_note(&evaluation.score, predictions, labels, batch.taken, width)) fail_memory();
}

/* Adds up the parts of this rank: in the order of the tree, of which there are a power of two, or one after the other.
 */
static double *sums_of_parts(void) {
  for (int64_t n = evaluation.n_parts; n > 1;) {
    const int64_t left = evaluation.by_tree ? n / 2 : n - 1;
    for (int64_t i = left; i < n; i++)
      for (int k = 0; k < SUMS; k++) evaluation.sums[evaluation.by_tree ? i - left : 0][k] += evaluation.sums[i][k];
    n = left;
  }
  evaluation.n_parts = 1;
  return evaluation.sums[0];
}

void accel_all_reduce_eval(enum accel_axis axis) {
  double *sums = sums_of_parts();
  if (evaluation.by_tree)
    accel_all_reduce_doubles_by_tree(axis, sums, SUMS);
  else
    accel_all_reduce_doubles(axis, sums, SUMS);
  bool predicts = evaluation.score.n_classes > 0 || evaluation.score.kind == ACCEL_PREDICTS_VALUES;
  if (predicts && !rt_score_all_reduce(evaluation.program, axis, &evaluation.score)) fail_memory();
}

static double metric(const char *name, double loss) {
  return strcmp(name, "perplexity") == 0 ? exp(loss) : rt_score_metric(&evaluation.score, name);
}

double accel_eval_loss(struct accel_run *run) {
  const char *const *metrics = run->program->metrics;
  const double *sums = sums_of_parts();
  double loss = sums[LOSS] / sums[COUNT];
  for (size_t i = 0; i < sizeof run->program->metrics / sizeof *metrics && metrics[i] != NULL; i++)
    rt_report_metric(run, metrics[i], metric(metrics[i], loss));
  return loss;
}
