#include "runtime/run/run.h"

#include "runtime/base/clock.h"
#include "runtime/data/load.h"
#include "runtime/process/world.h"
#include "runtime/run/eval_batches.h"

#include <string.h>

bool rt_input_open(struct accel_run *run, const char *train_path, struct problem *problem) {
  const struct accel_program *program = run->program;
  struct input *input = &run->input;
  const struct data_rank own = {accel_rank(run), rt_data_ranks(program)};
  if (!rt_data_open(&input->data, program, own, train_path, problem)) return false;
  int64_t in_epoch = input->data.split[ACCEL_TRAIN].mixture.taken / (program->batch_size * rt_data_batches(program));
  input->accumulation = (struct accumulation){in_epoch, program->micro_batches, program->sync_with_dataloader};
  return true;
}

bool rt_input_start(struct accel_run *run, struct problem *problem) {
  const struct accel_program *program = run->program;
  struct input *input = &run->input;
  const int64_t batch = program->batch_size * rt_data_batches(program) / input->data.own.size; /* of this process */
  if (!rt_prefetch_start(&input->prefetch, &input->data, program->prefetch * batch, problem)) return false;
  rt_prefetch_advance(&input->prefetch, rt_accumulation_of(&input->accumulation, run->first_step).first * batch);
  return true;
}

/* The position of the first sample after `at` steps, among those of all ranks, as the program counts them. */
static int64_t position_of(const struct accel_run *run, int64_t at) {
  return rt_accumulation_of(&run->input.accumulation, at).first * run->program->batch_size *
         rt_data_batches(run->program);
}

void rt_input_continue(struct accel_run *run, int64_t epoch, int64_t index) {
  struct data_split *train = &run->input.data.split[ACCEL_TRAIN];
  int64_t taken = train->mixture.taken;
  train->shift = epoch * taken + (index < taken ? index : taken) - position_of(run, run->first_step);
}

struct input_position rt_input_position(const struct accel_run *run, int64_t at) {
  const struct data_split *train = &run->input.data.split[ACCEL_TRAIN];
  int64_t position = position_of(run, at) + train->shift, taken = train->mixture.taken;
  return (struct input_position){position / taken, position % taken};
}

void rt_input_close(struct accel_run *run) {
  rt_prefetch_end(&run->input.prefetch);
  rt_data_close(&run->input.data);
}

/* ---- Batches ---- */

struct accel_micro_batches accel_micro_batches_of(const struct accel_run *run, int64_t at) {
  return rt_accumulation_of(&run->input.accumulation, at);
}

struct accel_contributors accel_contributors_in(const struct accel_run *run, int64_t number) {
  const struct mixture *mixture = &run->input.data.split[ACCEL_TRAIN].mixture;
  int64_t ranks = rt_batch_sharding_ranks(&mixture->sharding, mixture->samples, number);
  return (struct accel_contributors){ranks, run->input.data.own.rank < ranks ? 1.0f : 0.0f};
}

/* What is loaded for a batch: samples from position `first` on; copies of the last one fill it up. */
struct loading {
  int64_t first, count;
  double start; /* what it takes from then on is what a step waits for its input */
};

static struct loading batch_begins(struct accel_run *run, enum accel_split which, int64_t position, int64_t count) {
  struct loading loading = {position, count, rt_now()};
  if (which == ACCEL_TRAIN) {
    rt_prefetch_advance(&run->input.prefetch, position);
  } else {
    struct eval_batch batch = rt_eval_batch(run, position / count);
    loading.first = batch.first;
    loading.count = batch.taken;
  }
  return loading;
}

/* Fills up an array of `count` samples, `width` numbers of four bytes each; NULL: it was not asked for. */
static void fill_up(const struct loading *loading, int64_t count, void *array, int64_t width) {
  if (array == NULL) return;
  size_t bytes = 4 * (size_t)width;
  char *last = (char *)array + (size_t)(loading->count - 1) * bytes;
  for (int64_t i = loading->count; i < count; i++) memcpy((char *)array + (size_t)i * bytes, last, bytes);
}

static void batch_ends(struct accel_run *run, enum accel_split which, const struct loading *loading) {
  if (which == ACCEL_TRAIN) run->reports.watch->waited += rt_now() - loading->start;
}

/* Loads `count` sequences from the one at `first` on: see runtime/data/load.h. */
typedef void token_loader(const struct data *data, enum accel_split which, int64_t first, int64_t count,
                          int32_t *tokens, int32_t *targets);

static void load_tokens(token_loader *load, struct accel_run *run, enum accel_split which, int64_t position,
                        int64_t count, int32_t *tokens, int32_t *targets) {
  struct loading loading = batch_begins(run, which, position, count);
  load(&run->input.data, which, loading.first, loading.count, tokens, targets);
  int64_t length = run->program->sequence_length;
  fill_up(&loading, count, tokens, length);
  fill_up(&loading, count, targets, length);
  batch_ends(run, which, &loading);
}

void accel_load_sequences(struct accel_run *run, enum accel_split which, int64_t position, int64_t count,
                          int32_t *tokens, int32_t *targets) {
  load_tokens(rt_load_sequences, run, which, position, count, tokens, targets);
}

void accel_load_documents(struct accel_run *run, enum accel_split which, int64_t position, int64_t count,
                          int32_t *tokens, int32_t *targets, int32_t *starts, int32_t *positions) {
  struct loading loading = batch_begins(run, which, position, count);
  rt_load_documents(&run->input.data, which, loading.first, loading.count, tokens, targets, starts, positions);
  int32_t *arrays[] = {tokens, targets, starts, positions};
  for (int i = 0; i < 4; i++) fill_up(&loading, count, arrays[i], run->program->sequence_length);
  batch_ends(run, which, &loading);
}

void accel_load_masked(struct accel_run *run, enum accel_split which, int64_t position, int64_t count, int32_t *tokens,
                       int32_t *targets) {
  load_tokens(rt_load_masked, run, which, position, count, tokens, targets);
}

void accel_load_input(struct accel_run *run, enum accel_split which, int64_t position, int64_t count,
                      const struct accel_input *input, void *values) {
  struct loading loading = batch_begins(run, which, position, count);
  int index = (int)(input - run->program->inputs);
  rt_load_input(&run->input.data, which, loading.first, loading.count, index, values);
  fill_up(&loading, count, values, input->width);
  batch_ends(run, which, &loading);
}
