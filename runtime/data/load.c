#include "runtime/data/load.h"

#include "runtime/data/masking.h"
#include "runtime/process/fail.h"
#include "runtime/random/philox.h"

#include <inttypes.h>

/* From here on waking the other threads is worth it. */
enum { MANY_ROWS = 512 };

/* The data was checked at the start; a file that is written to meanwhile must still not lead a gather astray. */
static void fail_changed(const struct data *data, const struct data_file *file, int64_t token) {
  struct problem problem;
  rt_problem(&problem, "%s: token %" PRId64 ", not below the vocabulary of %" PRId64 ", was not there at the start",
             file->path, token, data->program->vocabulary);
  rt_help(&problem, "start again, and leave the file as it is while the program runs");
  rt_fail(&problem, 1);
}

static void fail_changed_number(const struct field *field, int64_t row, double number) {
  struct problem problem;
  rt_problem(&problem, "%s: %g of row %" PRId64 " is not what the model takes, and was not there at the start",
             field->path, number, row + 1);
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

static const struct data_split *split_of(const struct data *data, enum accel_split which) {
  const struct data_split *split = &data->split[which];
  if (split->source == NULL || split->mixture.samples == 0) fail_no_split();
  return split;
}

/* Sample `i` of a batch in an array that has `width` numbers of each; NULL: it is not asked for. */
static int32_t *in_batch(int32_t *array, int64_t i, int64_t width) {
  return array != NULL ? array + i * width : NULL;
}

/* The targets of a position without a sample, where they are asked for. */
static void forget(const struct data *data, int64_t count, int32_t *targets) {
  if (targets == NULL) return;
  for (int64_t i = 0; i < count; i++) targets[i] = data->program->no_target;
}

/* The samples of a batch of `count` from its sample `first` on, as many as are found at once. */
static int found_from(const struct data_split *split, int64_t position, int64_t first, int64_t count,
                      struct sample samples[FOUND_AT_ONCE]) {
  int found = count - first < FOUND_AT_ONCE ? (int)(count - first) : FOUND_AT_ONCE;
  rt_mixture_find_all(&split->mixture, position + first, found, samples);
  return found;
}

/* Tokens from `first` on; out may be NULL. */
static void copy_tokens(const struct data *data, const struct data_file *file, int64_t first, int64_t count,
                        int32_t *out) {
  int64_t vocabulary = data->program->vocabulary;
  if (out == NULL) return;
  int64_t most = rt_tokens_copy(&file->tokens, first, count, out);
  if (vocabulary > 0 && most >= vocabulary) fail_changed(data, file, most);
}

/* Targets: such tokens where they are trained on. */
static void copy_targets(const struct data *data, const struct data_file *file, int64_t first, int64_t count,
                         int32_t *out) {
  copy_tokens(data, file, first, count, out);
  if (out != NULL) rt_tokens_leave_out(&file->tokens, first, count, data->program->no_target, out);
}

void rt_load_sequences(const struct data *data, enum accel_split which, int64_t position, int64_t count,
                       int32_t *tokens, int32_t *targets) {
  const struct data_split *split = split_of(data, which);
  int64_t length = data->program->sequence_length;
  position = rt_data_position(data, which, position);
  struct sample samples[FOUND_AT_ONCE];
  for (int64_t i = 0; i < count; i++) {
    if (i % FOUND_AT_ONCE == 0) found_from(split, position, i, count, samples);
    struct sample sample = samples[i % FOUND_AT_ONCE];
    const struct data_file *file = &split->source->files[sample.part];
    copy_tokens(data, file, sample.start, length, in_batch(tokens, i, length));
    copy_targets(data, file, sample.start + 1, length, in_batch(targets, i, length));
    if (!sample.counts) forget(data, length, in_batch(targets, i, length));
  }
}

/* What a sequence's positions have of their documents: `first` is its first token. */
static void mark_documents(const struct data *data, const struct tokens *tokens, int64_t first, int32_t *targets,
                           int32_t *starts, int32_t *positions) {
  int64_t length = data->program->sequence_length, begin = 0, document = rt_tokens_document(tokens, first);
  int64_t next = rt_tokens_start(tokens, document + 1) - first; /* the position where the next one begins */
  for (int64_t t = 0; t < length; t++) {
    if (t == next) {
      begin = t;
      next = rt_tokens_start(tokens, ++document + 1) - first;
    }
    if (t + 1 == next && targets != NULL) targets[t] = data->program->no_target;
    if (starts != NULL) starts[t] = (int32_t)begin;
    if (positions != NULL) positions[t] = (int32_t)(t - begin);
  }
}

/* A document in a sequence of its own, as far as it fits. */
static void load_padded(const struct data *data, const struct data_file *file, int64_t document, int32_t *tokens,
                        int32_t *targets, int32_t *starts, int32_t *positions) {
  int64_t length = data->program->sequence_length;
  int64_t first = rt_tokens_start(&file->tokens, document);
  int64_t has = rt_tokens_start(&file->tokens, document + 1) - first;
  int64_t with_target = has - 1 < length ? has - 1 : length;
  copy_tokens(data, file, first, has < length ? has : length, tokens);
  copy_targets(data, file, first + 1, with_target, targets);
  for (int64_t t = has; tokens != NULL && t < length; t++) tokens[t] = 0;
  forget(data, length - with_target, in_batch(targets, with_target, 1));
  for (int64_t t = 0; starts != NULL && t < length; t++) starts[t] = 0;
  for (int64_t t = 0; positions != NULL && t < length; t++) positions[t] = (int32_t)t;
}

void rt_load_documents(const struct data *data, enum accel_split which, int64_t position, int64_t count,
                       int32_t *tokens, int32_t *targets, int32_t *starts, int32_t *positions) {
  const struct data_split *split = split_of(data, which);
  int64_t length = data->program->sequence_length, first = rt_data_position(data, which, position);
  bool padded = data->program->packing == ACCEL_PADDED;
  if (!padded) rt_load_sequences(data, which, position, count, tokens, targets);
  for (int64_t i = 0; i < count; i++) {
    struct sample sample = rt_mixture_find(&split->mixture, first + i);
    const struct data_file *file = &split->source->files[sample.part];
    int32_t *starts_of = in_batch(starts, i, length), *positions_of = in_batch(positions, i, length);
    int32_t *tokens_of = in_batch(tokens, i, length), *targets_of = in_batch(targets, i, length);
    if (padded)
      load_padded(data, file, sample.start, tokens_of, targets_of, starts_of, positions_of);
    else
      mark_documents(data, &file->tokens, sample.start, targets_of, starts_of, positions_of);
    if (!sample.counts) forget(data, length, targets_of);
  }
}

void rt_load_masked(const struct data *data, enum accel_split which, int64_t position, int64_t count, int32_t *tokens,
                    int32_t *targets) {
  const struct accel_program *program = data->program;
  const struct data_split *split = split_of(data, which);
  int64_t length = data->program->sequence_length;
  rt_load_sequences(data, which, position, count, tokens != NULL ? tokens : targets,
                    NULL); /* targets are these tokens */
  position = rt_data_position(data, which, position);
  for (int64_t i = 0; i < count; i++) {
    int32_t *tokens_of = in_batch(tokens, i, length), *targets_of = in_batch(targets, i, length);
    rt_mask(&program->masking, program->data_seed, RT_STREAM(RT_USE_MASK, which), position + i, length,
            program->vocabulary, tokens_of, targets_of);
    if (!rt_mixture_find(&split->mixture, position + i).counts) forget(data, length, targets_of);
  }
}

/* One row, whose numbers the input had when the data was opened. */
static void load_row(const struct data *data, const struct data_file *file, struct sample sample, int input,
                     uint32_t *values) {
  const struct accel_input *of = &data->program->inputs[input];
  double found;
  if (!rt_rows_load(&file->rows, sample.start, input, values, &found))
    fail_changed_number(&file->rows.fields[input], sample.start, found);
  for (int64_t i = 0; !sample.counts && of->is_target && i < of->width; i++) ((int32_t *)values)[i] = (int32_t)of->none;
}

void rt_load_input(const struct data *data, enum accel_split which, int64_t position, int64_t count, int input,
                   void *values) {
  const struct data_split *split = split_of(data, which);
  int64_t width = data->program->inputs[input].width;
  position = rt_data_position(data, which, position);
#pragma omp parallel for if (count >= MANY_ROWS)
  for (int64_t first = 0; first < count; first += FOUND_AT_ONCE) {
    struct sample samples[FOUND_AT_ONCE];
    int found = found_from(split, position, first, count, samples);
    for (int k = 0; k < found; k++)
      load_row(data, &split->source->files[samples[k].part], samples[k], input,
               (uint32_t *)values + (first + k) * width);
  }
}
