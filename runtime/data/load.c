/* Samples for a step. No allocation, no system call: the files are mapped, the tables are in memory. */
#include "runtime/base/clock.h"
#include "runtime/data/masking.h"
#include "runtime/process/fail.h"
#include "runtime/random/philox.h"
#include "runtime/run/run.h"

#include <inttypes.h>

/* From here on waking the other threads is worth it. */
enum { MANY_ROWS = 512 };

/* The data was checked at the start; a file that is written to meanwhile must still not lead a gather astray. */
static void fail_changed(const struct accel_run *run, const struct data_file *file, int64_t token) {
  struct problem problem;
  rt_problem(&problem, "%s: token %" PRId64 ", not below the vocabulary of %" PRId64 ", was not there at the start",
             file->path, token, run->data.vocabulary);
  rt_help(&problem, "start again, and leave the file as it is while the program runs");
  rt_fail(&problem, 1);
}

static void fail_changed_label(const struct data_file *file, int64_t row, double label) {
  struct problem problem;
  rt_problem(&problem, "%s: label %g of row %" PRId64 " is no class, and was not there at the start", file->path, label,
             row + 1);
  rt_help(&problem, "start again, and leave the files as they are while the program runs");
#pragma omp critical
  rt_fail(&problem, 1);
}

static void fail_no_split(void) {
  struct problem problem;
  rt_problem(&problem, "no data to evaluate on");
  rt_help(&problem, "set data.eval.path or data.eval_fraction in the job");
  rt_fail(&problem, 1);
}

static const struct data_split *split_of(const struct accel_run *run, enum accel_split which) {
  const struct data_split *split = &run->data.split[which];
  if (split->source == NULL || split->mixture.samples == 0) fail_no_split();
  return split;
}

struct accel_share accel_share_of(const struct accel_run *run, int64_t at) {
  return rt_share(&run->sharing, at);
}

struct accel_contributors accel_contributors_in(const struct accel_run *run, int64_t number) {
  const struct mixture *mixture = &run->data.split[ACCEL_TRAIN].mixture;
  int64_t ranks = rt_batch_sharding_ranks(&mixture->sharding, mixture->samples, number);
  return (struct accel_contributors){ranks, run->data.own.rank < ranks ? 1.0f : 0.0f};
}

/* A batch for a step begins, at `position`; what it takes until batch_ends is what the step waits for its input. */
static double batch_begins(struct accel_run *run, enum accel_split which, int64_t position) {
  if (which == ACCEL_TRAIN) rt_prefetch_tell(&run->prefetch, position);
  return rt_now();
}

static void batch_ends(struct accel_run *run, enum accel_split which, double start) {
  if (which == ACCEL_TRAIN) run->watch->waited += rt_now() - start;
}

/* Sample `i` of a batch in an array that has `width` numbers of each; NULL: it is not asked for. */
static int32_t *in_batch(int32_t *array, int64_t i, int64_t width) {
  return array != NULL ? array + i * width : NULL;
}

/* The targets of a place without a sample, where they are asked for. */
static void forget(const struct accel_run *run, int64_t count, int32_t *targets) {
  if (targets == NULL) return;
  for (int64_t i = 0; i < count; i++) targets[i] = run->program->no_target;
}

/* The samples of a batch of `count` from its sample `first` on, as many as are found at once. */
static int found_from(const struct data_split *split, int64_t position, int64_t first, int64_t count,
                      struct place places[FOUND_AT_ONCE]) {
  int found = count - first < FOUND_AT_ONCE ? (int)(count - first) : FOUND_AT_ONCE;
  rt_mixture_find_all(&split->mixture, position + first, found, places);
  return found;
}

/* Tokens from `first` on; out may be NULL. */
static void copy_tokens(const struct accel_run *run, const struct data_file *file, int64_t first, int64_t count,
                        int32_t *out) {
  int64_t vocabulary = run->data.vocabulary;
  if (out == NULL) return;
  int64_t most = rt_tokens_copy(&file->tokens, first, count, out);
  if (vocabulary > 0 && most >= vocabulary) fail_changed(run, file, most);
}

static void load_windows(const struct accel_run *run, enum accel_split which, int64_t position, int64_t count,
                         int32_t *tokens, int32_t *targets) {
  const struct data_split *split = split_of(run, which);
  int64_t length = run->data.sequence_length;
  position = rt_data_position(&run->data, which, position);
  struct place places[FOUND_AT_ONCE];
  for (int64_t i = 0; i < count; i++) {
    if (i % FOUND_AT_ONCE == 0) found_from(split, position, i, count, places);
    struct place place = places[i % FOUND_AT_ONCE];
    const struct data_file *file = &split->source->files[place.part];
    copy_tokens(run, file, place.start, length, in_batch(tokens, i, length));
    copy_tokens(run, file, place.start + 1, length, in_batch(targets, i, length));
    if (!place.counts) forget(run, length, in_batch(targets, i, length));
  }
}

void accel_load_windows(struct accel_run *run, enum accel_split which, int64_t position, int64_t count, int32_t *tokens,
                        int32_t *targets) {
  double start = batch_begins(run, which, position);
  load_windows(run, which, position, count, tokens, targets);
  batch_ends(run, which, start);
}

/* What a window's places have of their documents: `first` is its first token. */
static void mark_documents(const struct accel_run *run, const struct tokens *tokens, int64_t first, int32_t *targets,
                           int32_t *starts, int32_t *positions) {
  int64_t length = run->data.sequence_length, begin = 0, document = rt_tokens_document(tokens, first);
  int64_t next = rt_tokens_start(tokens, document + 1) - first; /* the place where the next one begins */
  for (int64_t t = 0; t < length; t++) {
    if (t == next) {
      begin = t;
      next = rt_tokens_start(tokens, ++document + 1) - first;
    }
    if (t + 1 == next && targets != NULL) targets[t] = run->program->no_target;
    if (starts != NULL) starts[t] = (int32_t)begin;
    if (positions != NULL) positions[t] = (int32_t)(t - begin);
  }
}

/* A document in a window of its own, as far as it fits. */
static void load_padded(const struct accel_run *run, const struct data_file *file, int64_t document, int32_t *tokens,
                        int32_t *targets, int32_t *starts, int32_t *positions) {
  int64_t length = run->data.sequence_length;
  int64_t first = rt_tokens_start(&file->tokens, document);
  int64_t has = rt_tokens_start(&file->tokens, document + 1) - first;
  int64_t with_target = has - 1 < length ? has - 1 : length;
  copy_tokens(run, file, first, has < length ? has : length, tokens);
  copy_tokens(run, file, first + 1, with_target, targets);
  for (int64_t t = has; tokens != NULL && t < length; t++) tokens[t] = 0;
  forget(run, length - with_target, in_batch(targets, with_target, 1));
  for (int64_t t = 0; starts != NULL && t < length; t++) starts[t] = 0;
  for (int64_t t = 0; positions != NULL && t < length; t++) positions[t] = (int32_t)t;
}

void accel_load_documents(struct accel_run *run, enum accel_split which, int64_t position, int64_t count,
                          int32_t *tokens, int32_t *targets, int32_t *starts, int32_t *positions) {
  double start = batch_begins(run, which, position);
  const struct data_split *split = split_of(run, which);
  int64_t length = run->data.sequence_length, first = rt_data_position(&run->data, which, position);
  bool padded = run->program->packing == ACCEL_PADDED;
  if (!padded) load_windows(run, which, position, count, tokens, targets);
  for (int64_t i = 0; i < count; i++) {
    struct place place = rt_mixture_find(&split->mixture, first + i);
    const struct data_file *file = &split->source->files[place.part];
    int32_t *starts_of = in_batch(starts, i, length), *positions_of = in_batch(positions, i, length);
    int32_t *tokens_of = in_batch(tokens, i, length), *targets_of = in_batch(targets, i, length);
    if (padded)
      load_padded(run, file, place.start, tokens_of, targets_of, starts_of, positions_of);
    else
      mark_documents(run, &file->tokens, place.start, targets_of, starts_of, positions_of);
    if (!place.counts) forget(run, length, targets_of);
  }
  batch_ends(run, which, start);
}

void accel_load_masked(struct accel_run *run, enum accel_split which, int64_t position, int64_t count, int32_t *tokens,
                       int32_t *targets) {
  const struct accel_program *program = run->program;
  const struct data_split *split = split_of(run, which);
  int64_t length = run->data.sequence_length;
  double start = batch_begins(run, which, position);
  load_windows(run, which, position, count, tokens != NULL ? tokens : targets, NULL); /* targets are these tokens */
  position = rt_data_position(&run->data, which, position);
  for (int64_t i = 0; i < count; i++) {
    int32_t *tokens_of = in_batch(tokens, i, length), *targets_of = in_batch(targets, i, length);
    rt_mask(&program->masking, program->data_seed, RT_STREAM(RT_USE_MASK, which), position + i, length,
            program->vocabulary, tokens_of, targets_of);
    if (!rt_mixture_find(&split->mixture, position + i).counts) forget(run, length, targets_of);
  }
  batch_ends(run, which, start);
}

/* Rows with their labels, which are classes or values; the other is NULL, and so is what is not asked for. */
static void load_rows(struct accel_run *run, enum accel_split which, int64_t position, int64_t count, float *features,
                      int32_t *classes, float *values) {
  const struct data_split *split = split_of(run, which);
  const struct accel_index class = rt_class_index(run->program);
  double start = batch_begins(run, which, position);
  position = rt_data_position(&run->data, which, position);
#pragma omp parallel for if (count >= MANY_ROWS)
  for (int64_t first = 0; first < count; first += FOUND_AT_ONCE) {
    struct place places[FOUND_AT_ONCE];
    int found = found_from(split, position, first, count, places);
    for (int k = 0; k < found; k++) {
      const struct data_file *file = &split->source->files[places[k].part];
      const struct rows *rows = &file->rows;
      int64_t i = first + k;
      double label = rt_rows_load(rows, places[k].start, features != NULL ? features + i * rows->width : NULL);
      if (values != NULL) values[i] = (float)label;
      if (classes != NULL && !rt_index_fits(&class, label)) fail_changed_label(file, places[k].start, label);
      if (classes != NULL) classes[i] = (int32_t)label;
      if (classes != NULL && !places[k].counts) forget(run, 1, classes + i);
    }
  }
  batch_ends(run, which, start);
}

void accel_load_classes(struct accel_run *run, enum accel_split which, int64_t position, int64_t count, float *features,
                        int32_t *labels) {
  load_rows(run, which, position, count, features, labels, NULL);
}

void accel_load_values(struct accel_run *run, enum accel_split which, int64_t position, int64_t count, float *features,
                       float *labels) {
  load_rows(run, which, position, count, features, NULL, labels);
}
