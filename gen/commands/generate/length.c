#include "gen/commands/generate/length.h"

#include <stdlib.h>

#include "runtime/data/accumulation.h"
#include "runtime/data/data.h"

/* The same as the runtime has it; NULL without memory. */
static struct accel_part *parts_of(const struct data_source *source) {
  struct accel_part *parts = calloc((size_t)source->n_parts, sizeof *parts);
  for (int i = 0; parts != NULL && i < source->n_parts; i++)
    parts[i] = (struct accel_part){source->parts[i].path, source->parts[i].arrays, source->parts[i].weight};
  return parts;
}

/* The inputs of rows as the runtime has them, with nothing asked of their numbers. */
static const struct accel_input *inputs_of(struct arena *arena, const struct job *job) {
  struct accel_input *inputs = arena_alloc(arena, ((size_t)job->data.n_inputs + 1) * sizeof *inputs);
  for (int i = 0; i < job->data.n_inputs; i++) {
    const struct data_input *input = &job->data.inputs[i];
    inputs[i] = (struct accel_input){.name = input->name,
                                     .column = input->column,
                                     .dtype = input->is_integer ? ACCEL_INT32 : ACCEL_FLOAT32,
                                     .width = input->width};
  }
  return inputs;
}

/* What the runtime asks of a program when it opens data. */
static struct accel_program program_of(struct arena *arena, const struct job *job, const struct accel_part *parts) {
  static const enum accel_format formats[] = {ACCEL_BYTES,  ACCEL_NANOGPT, ACCEL_LLMC,       ACCEL_CSV,
                                              ACCEL_TOKENS, ACCEL_NPY,     ACCEL_NPY_TOKENS, ACCEL_NPZ};
  return (struct accel_program){
      .batch_size = job->data.batch_size,
      .round = job_round(job),
      .source = {{NULL, formats[job->data.train.format]}},
      .parts = {{parts, job->data.train.n_parts}},
      .eval_fraction = job->data.eval.n_parts == 0 ? job->data.eval_fraction : 0,
      .epoch_samples = job->data.epoch_samples,
      .shuffle = job->data.shuffle,
      .packing = (enum accel_packing)job->data.packing,
      .rest = {.kept = job->data.keep_last, .even = job->data.even_batches, .dispatched = job->data.dispatch_batches},
      .counts_targets = job->accumulation.normalize == NORMALIZE_TOKENS,
      .no_target = ACCEL_NO_TARGET, /* nothing is loaded: any will do */
      .sequence_length = job_has_rows(job) ? 0 : job->data.sequence_length,
      .inputs = inputs_of(arena, job),
      .n_inputs = job->data.n_inputs};
}

/* Opens the data of a run as the trainer does, for `use`; whether it could be opened. */
static bool with_data(struct job *job, void (*use)(struct job *job, const struct data *data, void *context),
                      void *context, struct problem *problem) {
  struct accel_part *parts = parts_of(&job->data.train);
  struct arena *arena = arena_new();
  struct accel_program program = program_of(arena, job, parts);
  struct data data;
  rt_problem(problem, "no memory for the list of data files");
  bool open = parts != NULL &&
              rt_data_open(&data, &program, (struct data_rank){.rank = 0, .size = job_batch_ranks(job)}, NULL, problem);
  if (open) use(job, &data, context);
  if (parts != NULL) rt_data_close(&data);
  free(parts);
  arena_free(arena);
  return open;
}

static void take_samples(struct job *job, const struct data *data, void *taken) {
  job->data.samples = data->split[ACCEL_TRAIN].mixture.samples;
  *(int64_t *)taken = data->split[ACCEL_TRAIN].mixture.taken;
}

/* The samples that a run trains on, and how many of them an epoch takes. */
static bool count_samples(struct job *job, const char *key, int64_t *taken, struct diagnostics *diags) {
  struct problem problem;
  const bool open = with_data(job, take_samples, taken, &problem);
  if (!open) {
    diag_error(diags, job_where(job, "data.train"), "%s", problem.what);
    diag_note(diags, job_where(job, key), "for '%s' the samples are counted when the program is generated", key);
    diag_help(diags, "run accel-gen where the trainer will run, or give training.steps");
  }
  return open;
}

static void take_trained(struct job *job, const struct data *data, void *found) {
  const struct data_files *source = data->split[ACCEL_TRAIN].source;
  struct trained_tokens *trained = found;
  trained->trained = rt_data_trained(source);
  for (size_t i = 0; i < source->paths.count; i++) trained->tokens += source->files[i].tokens.count;
  (void)job;
}

bool find_trained(struct job *job, struct trained_tokens *trained) {
  struct problem unread;
  *trained = (struct trained_tokens){.trained = -1};
  return job->data.train.format == DATA_TOKENS && with_data(job, take_trained, trained, &unread) &&
         trained->trained >= 0;
}

/* Whether the steps of the run reach what `key` says, as gen/spec/rules.c asks where the job has steps. */
static bool check_reached(const struct job *job, const char *key, int64_t steps, const char *cause,
                          struct diagnostics *diags) {
  if (steps <= job->training.steps) return true;
  diag_error(diags, job_where(job, key), "'%s' must be at most the steps of the run, which are %lld, not %lld", key,
             (long long)job->training.steps, (long long)steps);
  diag_note(diags, job_where(job, cause), "'%s' makes so many", cause);
  return false;
}

static bool check_steps(const struct job *job, const char *cause, struct diagnostics *diags) {
  bool averages = job->training.ema.decay > 0;
  return check_reached(job, "schedule.warmup_steps", job->schedule.warmup_steps, cause, diags) &&
         (!averages || check_reached(job, "training.ema.every", job->training.ema.every, cause, diags));
}

bool find_steps(struct job *job, struct diagnostics *diags) {
  if (job->training.steps > 0) return true;
  bool in_epochs = job->training.epochs > 0;
  const char *key = in_epochs ? "training.epochs" : "training.samples";
  int64_t ranks = job_batch_ranks(job);
  struct accumulation accumulation = {1, job->accumulation.num_steps, job->accumulation.sync_with_dataloader};
  int64_t batch = job->data.batch_size * ranks, taken = batch; /* of all ranks */
  bool has_short = job->data.keep_last;                        /* batches */
  bool needs_data = in_epochs || has_short || (accumulation.in_step > 1 && accumulation.with_epochs);
  if (needs_data && !count_samples(job, key, &taken, diags)) return false;
  accumulation.in_epoch = taken / batch;
  int64_t epochs = job->training.epochs, rest = 0;
  if (!in_epochs && has_short) {
    epochs = job->training.samples / job->data.samples;
    rest = job->training.samples % job->data.samples;
  } else if (!in_epochs) {
    rest = job->training.samples;
  }
  int64_t micro_batches = epochs * accumulation.in_epoch + rest / batch + (rest % batch != 0);
  job->training.steps = rt_accumulation_steps(&accumulation, micro_batches);
  return check_steps(job, key, diags);
}
