#include "runtime/run/run.h"

#include "runtime/base/clock.h"
#include "runtime/data/load.h"
#include "runtime/process/world.h"

bool rt_input_open(struct accel_run *run, const char *train_path, struct problem *problem) {
  const struct accel_program *program = run->program;
  struct input *input = &run->input;
  const struct data_rank own = {accel_rank(run), rt_data_ranks(program)};
  if (!rt_data_open(&input->data, program, own, train_path, problem)) return false;
  int64_t in_epoch = input->data.split[ACCEL_TRAIN].mixture.taken / (program->batch_size * own.size);
  input->sharing = (struct sharing){in_epoch, program->micro_batches, program->sync_with_dataloader};
  return true;
}

bool rt_input_start(struct accel_run *run, struct problem *problem) {
  const struct accel_program *program = run->program;
  struct input *input = &run->input;
  if (!rt_prefetch_start(&input->prefetch, &input->data, program->prefetch * program->batch_size, problem))
    return false;
  rt_prefetch_tell(&input->prefetch, rt_share(&input->sharing, run->first_step).first * program->batch_size);
  return true;
}

/* The position of the first sample after `at` steps, among those of all ranks, as the program counts them. */
static int64_t position_of(const struct accel_run *run, int64_t at) {
  return rt_share(&run->input.sharing, at).first * run->program->batch_size * run->input.data.own.size;
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

/* ---- Samples ---- */

int64_t accel_samples(const struct accel_run *run, enum accel_split split) {
  return run->input.data.split[split].mixture.samples;
}

struct accel_range accel_part_of_samples(const struct accel_run *run, enum accel_split split, int64_t part,
                                         int64_t parts) {
  int64_t samples = accel_samples(run, split), batch = run->program->batch_size;
  int64_t batches = samples / batch + (samples % batch != 0);
  int64_t first = batches * part / parts * batch, end = batches * (part + 1) / parts * batch;
  return (struct accel_range){first, end < samples ? end : samples};
}

struct accel_range accel_own_samples(const struct accel_run *run, enum accel_split split) {
  return accel_part_of_samples(run, split, accel_rank(run), rt_data_ranks(run->program));
}

int64_t accel_rounds(const struct accel_run *run, enum accel_split split, int64_t parts) {
  int64_t samples = accel_samples(run, split), batch = run->program->batch_size;
  int64_t batches = samples / batch + (samples % batch != 0);
  return batches / parts + (batches % parts != 0);
}

/* ---- Batches ---- */

struct accel_share accel_share_of(const struct accel_run *run, int64_t at) {
  return rt_share(&run->input.sharing, at);
}

struct accel_contributors accel_contributors_in(const struct accel_run *run, int64_t number) {
  const struct mixture *mixture = &run->input.data.split[ACCEL_TRAIN].mixture;
  int64_t ranks = rt_batch_sharding_ranks(&mixture->sharding, mixture->samples, number);
  return (struct accel_contributors){ranks, run->input.data.own.rank < ranks ? 1.0f : 0.0f};
}

/* A batch for a step begins, at `position`; what it takes until batch_ends is what the step waits for its input. */
static double batch_begins(struct accel_run *run, enum accel_split which, int64_t position) {
  if (which == ACCEL_TRAIN) rt_prefetch_tell(&run->input.prefetch, position);
  return rt_now();
}

static void batch_ends(struct accel_run *run, enum accel_split which, double start) {
  if (which == ACCEL_TRAIN) run->reports.watch->waited += rt_now() - start;
}

void accel_load_windows(struct accel_run *run, enum accel_split which, int64_t position, int64_t count, int32_t *tokens,
                        int32_t *targets) {
  double start = batch_begins(run, which, position);
  rt_load_windows(&run->input.data, which, position, count, tokens, targets);
  batch_ends(run, which, start);
}

void accel_load_documents(struct accel_run *run, enum accel_split which, int64_t position, int64_t count,
                          int32_t *tokens, int32_t *targets, int32_t *starts, int32_t *positions) {
  double start = batch_begins(run, which, position);
  rt_load_documents(&run->input.data, which, position, count, tokens, targets, starts, positions);
  batch_ends(run, which, start);
}

void accel_load_masked(struct accel_run *run, enum accel_split which, int64_t position, int64_t count, int32_t *tokens,
                       int32_t *targets) {
  double start = batch_begins(run, which, position);
  rt_load_masked(&run->input.data, which, position, count, tokens, targets);
  batch_ends(run, which, start);
}

void accel_load_classes(struct accel_run *run, enum accel_split which, int64_t position, int64_t count, float *features,
                        int32_t *labels) {
  double start = batch_begins(run, which, position);
  rt_load_rows(&run->input.data, which, position, count, features, labels, NULL);
  batch_ends(run, which, start);
}

void accel_load_values(struct accel_run *run, enum accel_split which, int64_t position, int64_t count, float *features,
                       float *labels) {
  double start = batch_begins(run, which, position);
  rt_load_rows(&run->input.data, which, position, count, features, NULL, labels);
  batch_ends(run, which, start);
}
