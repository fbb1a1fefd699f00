#include "runtime/data/data.h"

#include "runtime/base/digits.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const split_names[ACCEL_SPLITS] = {"train", "eval"};

static bool no_memory(struct problem *problem) {
  return rt_problem(problem, "no memory for the list of data files");
}

/* ---- A source: its files ---- */

/* What a source names: one path, or parts of several. */
static int count_of(const struct accel_program *program, enum accel_split split) {
  return program->parts[split].count > 0 ? program->parts[split].count : program->source[split].path != NULL;
}

static struct accel_part part_of(const struct accel_program *program, enum accel_split split, int index) {
  if (program->parts[split].count > 0) return program->parts[split].items[index];
  return (struct accel_part){.path = program->source[split].path};
}

/* A part's weight is shared by its files as their sizes are, once these are known: here every file has the whole. */
static bool expand(struct data_files *source, const struct accel_part *part, int n_inputs, const char *cure,
                   struct problem *problem) {
  size_t before = source->paths.count;
  if (!rt_paths_add(&source->paths, part->path, cure, problem)) return false;
  size_t found = source->paths.count - before;
  for (int i = 0; part->arrays != NULL && i < n_inputs; i++) {
    struct paths *arrays = &source->arrays[i];
    size_t had = arrays->count;
    if (part->arrays[i] == NULL) continue;
    if (!rt_paths_add(arrays, part->arrays[i], cure, problem)) return false;
    if (arrays->count - had == found) continue;
    rt_problem(problem, "%s: %zu files for the %zu files of %s", part->arrays[i], arrays->count - had, found,
               part->path);
    return rt_help(problem, "give each file of rows one of them, in the same order");
  }
  double *weights = realloc(source->weights, source->paths.count * sizeof *weights);
  if (weights == NULL) return no_memory(problem);
  source->weights = weights;
  for (size_t i = before; i < source->paths.count; i++) weights[i] = part->weight;
  return true;
}

static bool open_files(struct data_files *source, const struct accel_program *program, enum accel_format format,
                       const char *cure, struct problem *problem) {
  source->files = calloc(source->paths.count, sizeof *source->files);
  if (source->files == NULL) return no_memory(problem);
  for (size_t i = 0; i < source->paths.count; i++) {
    const char *arrays[MOST_INPUTS];
    for (int k = 0; k < MOST_INPUTS; k++) arrays[k] = source->arrays[k].count > 0 ? source->arrays[k].items[i] : NULL;
    if (!rt_data_file_open(&source->files[i], source->paths.items[i], arrays, format, program, cure, problem))
      return false;
    source->count += rt_data_file_count(&source->files[i]);
  }
  return true;
}

/* The weights of the parts become those of their files; none is left when none was given. */
static void share_weights(struct data_files *source, const struct accel_program *program, enum accel_split split,
                          const size_t *ends) {
  for (int part = 0, first = 0; part < count_of(program, split); first = (int)ends[part++]) {
    int64_t all = 0;
    for (size_t i = (size_t)first; i < ends[part]; i++) all += rt_data_file_count(&source->files[i]);
    for (size_t i = (size_t)first; i < ends[part]; i++)
      source->weights[i] *= all > 0 ? (double)rt_data_file_count(&source->files[i]) / (double)all : 0;
  }
  if (part_of(program, split, 0).weight > 0) return;
  free(source->weights);
  source->weights = NULL;
}

static bool open_source(struct data_files *source, const struct accel_program *program, enum accel_split split,
                        const char *instead, struct problem *problem) {
  char cure[96];
  snprintf(cure, sizeof cure, "correct data.%s.path in the job%s", split_names[split],
           split == ACCEL_TRAIN ? ", or name a file with --data FILE" : "");
  int count = instead != NULL ? 1 : count_of(program, split);
  size_t *ends = calloc((size_t)count + 1, sizeof *ends);
  bool good = ends != NULL || no_memory(problem);
  for (int i = 0; good && i < count; i++) {
    struct accel_part part = instead != NULL ? (struct accel_part){.path = instead} : part_of(program, split, i);
    good = expand(source, &part, program->n_inputs, cure, problem);
    ends[i] = source->paths.count;
  }
  good = good && (count == 0 || open_files(source, program, program->source[split].format, cure, problem));
  if (good && instead == NULL && count > 0) share_weights(source, program, split, ends);
  if (good && instead != NULL) free(source->weights), source->weights = NULL;
  free(ends);
  return good;
}

static void close_source(struct data_files *source) {
  for (size_t i = 0; source->files != NULL && i < source->paths.count; i++) rt_data_file_close(&source->files[i]);
  free(source->files);
  free(source->weights);
  rt_paths_free(&source->paths);
  for (int i = 0; i < MOST_INPUTS; i++) rt_paths_free(&source->arrays[i]);
}

/* ---- A split: the samples of a source's files, or of a part of each ---- */

static struct batch_sharding sharding_of(const struct accel_program *program, struct data_rank own) {
  const struct accel_rest *rest = &program->rest;
  const int64_t devices = program->devices > 0 ? program->devices : 1;
  int64_t round = program->round > 0 ? program->round : own.size * devices;
  return (struct batch_sharding){program->batch_size, round, rest->kept, rest->even, rest->dispatched,
                                 rest->uneven_inputs};
}

static struct order order_of(const struct data_file *file, const struct accel_program *program, enum accel_split split,
                             int64_t first, int64_t count) {
  if (rt_format_is_rows(file->format) || file->padded)
    return rt_order_of_rows(program->data_seed, split, program->shuffle, first, count);
  return rt_order_of_sequences(program->data_seed, split, program->shuffle, first, count, program->sequence_length);
}

/* A file that no sample fits into can have no weight. */
static bool check_parts(const struct data_files *source, const struct order *parts, struct problem *problem) {
  for (size_t i = 0; source->weights != NULL && i < source->paths.count; i++)
    if (parts[i].samples == 0) {
      rt_problem(problem, "%s: too few tokens or rows for a sample, but it has a weight", source->paths.items[i]);
      return rt_help(problem, "leave the file out of data.train.path");
    }
  return true;
}

/* Of each file what is trained on, or, `tail`, the end that is kept for evaluation. */
static bool cut(struct data *data, const struct data_files *source, const struct accel_program *program,
                enum accel_split split, double kept, bool tail, struct problem *problem) {
  struct data_split *to = &data->split[split];
  int64_t count = (int64_t)source->paths.count;
  struct order *parts = calloc((size_t)count, sizeof *parts);
  if (parts == NULL) return no_memory(problem);
  for (int64_t i = 0; i < count; i++) {
    const struct data_file *file = &source->files[i];
    int64_t all = rt_data_file_count(file), head = (int64_t)((double)all * kept); /* as nanoGPT cuts: int(n * 0.9) */
    parts[i] = order_of(file, program, split, tail ? head : 0, tail ? all - head : head);
  }
  to->source = source;
  bool good = (split == ACCEL_EVAL || check_parts(source, parts, problem)) &&
              (rt_mixture_make(&to->mixture, parts, source->weights, count, program->epoch_samples,
                               sharding_of(program, data->own)) ||
               no_memory(problem));
  free(parts);
  return good;
}

/* What of the training source is trained on: all but the tail, where that is the evaluation split. */
static double kept_of(const struct data *data, const struct accel_program *program) {
  return data->source[ACCEL_EVAL].files == NULL && program->eval_fraction > 0 ? 1.0 - program->eval_fraction : 1.0;
}

static bool cut_eval(struct data *data, const struct accel_program *program, struct problem *problem) {
  const struct data_files *train = &data->source[ACCEL_TRAIN], *eval = &data->source[ACCEL_EVAL];
  double kept = kept_of(data, program);
  if (eval->files != NULL) return cut(data, eval, program, ACCEL_EVAL, 1.0, false, problem);
  return kept == 1.0 || train->files == NULL || cut(data, train, program, ACCEL_EVAL, kept, true, problem);
}

static bool cut_splits(struct data *data, const struct accel_program *program, struct problem *problem) {
  const struct data_files *train = &data->source[ACCEL_TRAIN];
  return cut_eval(data, program, problem) &&
         (train->files == NULL || cut(data, train, program, ACCEL_TRAIN, kept_of(data, program), false, problem));
}

/* ---- Whether there is enough ---- */

/* "corpus.txt", or "corpus-0.txt and 7 more". */
static void name_files(const struct data_files *source, char *out, size_t size) {
  if (source->paths.count == 1)
    snprintf(out, size, "%s", source->paths.items[0]);
  else
    snprintf(out, size, "%s and %zu more", source->paths.items[0], source->paths.count - 1);
}

/* What a sample is called. */
static const char *unit_of(const struct data_split *split) {
  const struct data_file *file = &split->source->files[0];
  return rt_format_is_rows(file->format) ? "row" : file->padded ? "document" : "sequence";
}

static bool is_sequence(const struct data_split *split) {
  return strcmp(unit_of(split), "sequence") == 0;
}

static bool check_size(const struct data_split *split, const struct accel_program *program, enum accel_split which,
                       int64_t needed, struct problem *problem) {
  char name[400];
  if (split->source == NULL) {
    rt_problem(problem, "no data to %s", which == ACCEL_TRAIN ? "train on" : "evaluate on");
    return rt_help(problem, which == ACCEL_TRAIN ? "name a file with --data FILE, or set data.train.path in the job"
                                                 : "set data.eval.path or data.eval_fraction in the job");
  }
  if (split->mixture.samples >= needed && split->mixture.has > 0) return true;
  name_files(split->source, name, sizeof name);
  if (!is_sequence(split))
    rt_problem(problem, "%s: %" PRId64 " %ss for %s are too few: %" PRId64 " needed", name, split->mixture.samples,
               unit_of(split), split_names[which], needed);
  else
    rt_problem(problem, "%s: %" PRId64 " sequences for %s (of %" PRId64 " tokens each) are too few: %" PRId64 " needed",
               name, split->mixture.samples, split_names[which], program->sequence_length, needed);
  return rt_help(problem, which == ACCEL_TRAIN
                              ? "give a larger file with --data, or reduce data.batch_size or data.sequence_length"
                              : "give a larger file, or a larger data.eval_fraction");
}

/* Steps that were counted in epochs are those of so many samples alone. */
static bool check_counted(const struct data *data, const struct accel_program *program, struct problem *problem) {
  char name[400];
  const struct data_split *split = &data->split[ACCEL_TRAIN];
  if (program->samples == 0 || split->mixture.samples == program->samples) return true;
  name_files(split->source, name, sizeof name);
  rt_problem(problem,
             "%s: %" PRId64 " %ss to train on, but the %" PRId64 " steps of this program were counted from %" PRId64,
             name, split->mixture.samples, unit_of(split), program->steps, program->samples);
  return rt_help(problem, "generate the program again with this data, or give the job training.steps");
}

static bool check_sizes(const struct data *data, const struct accel_program *program, struct problem *problem) {
  const struct batch_sharding *sharding = &data->split[ACCEL_TRAIN].mixture.sharding;
  int64_t round = program->rest.kept ? 1 : sharding->batch * sharding->ranks;
  if (!check_size(&data->split[ACCEL_TRAIN], program, ACCEL_TRAIN, round, problem)) return false;
  if (!check_counted(data, program, problem)) return false;
  return (program->eval_every <= 0 && program->eval_epochs.count == 0) ||
         check_size(&data->split[ACCEL_EVAL], program, ACCEL_EVAL, 1, problem);
}

int64_t rt_data_position(const struct data *data, enum accel_split which, int64_t position) {
  const struct data_split *split = &data->split[which];
  const struct batch_sharding *sharding = &split->mixture.sharding;
  if (which == ACCEL_EVAL) return position;
  int64_t number = position / sharding->batch * data->own.size + data->own.rank; /* among the batches of all ranks */
  return rt_batch_sharding_first(sharding, number / sharding->ranks, number % sharding->ranks) +
         position % sharding->batch + split->shift;
}

/* An input whose numbers are not in the file that the job names as data.train.path; NULL: all are. */
static const struct accel_input *input_elsewhere(const struct accel_program *program) {
  const bool is_array = program->source[ACCEL_TRAIN].format == ACCEL_NPY;
  for (int part = 0; part < count_of(program, ACCEL_TRAIN); part++) {
    const char *const *arrays = part_of(program, ACCEL_TRAIN, part).arrays;
    for (int i = 0; arrays != NULL && i < program->n_inputs; i++)
      if (arrays[i] != NULL) return &program->inputs[i];
  }
  return is_array && program->n_inputs > 1 ? &program->inputs[program->n_inputs - 1] : NULL;
}

/* Whether one file that a flag names can be in place of the job's. */
static bool check_flag(const struct accel_program *program, const char *path, struct problem *problem) {
  const struct accel_input *input = path != NULL ? input_elsewhere(program) : NULL;
  if (input == NULL) return true;
  rt_problem(problem, "--data %s: '%s' is in a file of its own, which a flag cannot name", path, input->name);
  return rt_help(problem, "name both files in the job");
}

bool rt_data_open(struct data *data, const struct accel_program *program, struct data_rank own, const char *train_path,
                  struct problem *problem) {
  *data = (struct data){.program = program, .own = own};
  if (!check_flag(program, train_path, problem)) return false;
  for (enum accel_split split = 0; split < ACCEL_SPLITS; split++)
    if (!open_source(&data->source[split], program, split, split == ACCEL_TRAIN ? train_path : NULL, problem))
      return false;
  return cut_splits(data, program, problem) && check_sizes(data, program, problem) &&
         (program->order == NULL || rt_mixture_sample_by(&data->split[ACCEL_TRAIN].mixture, program->order) ||
          no_memory(problem));
}

bool rt_data_open_eval(struct data *data, const struct accel_program *program, const char *path,
                       struct problem *problem) {
  const struct data_rank alone = {.rank = 0, .size = 1};
  *data = (struct data){.program = program, .own = alone};
  bool own = path != NULL || count_of(program, ACCEL_EVAL) > 0;
  if (!check_flag(program, path, problem)) return false;
  struct accel_program named = *program;
  if (count_of(program, ACCEL_EVAL) == 0) named.source[ACCEL_EVAL].format = named.source[ACCEL_TRAIN].format;
  if (own || program->eval_fraction > 0) {
    enum accel_split split = own ? ACCEL_EVAL : ACCEL_TRAIN;
    if (!open_source(&data->source[split], &named, split, path, problem)) return false;
  }
  return cut_eval(data, program, problem) && check_size(&data->split[ACCEL_EVAL], program, ACCEL_EVAL, 1, problem);
}

int64_t rt_data_trained(const struct data_files *source) {
  int64_t trained = 0;
  bool marked = false;
  for (size_t i = 0; i < source->paths.count; i++) {
    const struct tokens *tokens = &source->files[i].tokens;
    marked |= tokens->marked;
    trained += tokens->marked ? tokens->trained : tokens->count;
  }
  return marked ? trained : -1;
}

void rt_data_describe(const struct data *data, char *out, size_t size) {
  const struct data_split *split = &data->split[ACCEL_TRAIN], *other = &data->split[ACCEL_EVAL];
  const char *sample = unit_of(split), *unit = is_sequence(split) ? "token" : sample;
  char name[400], all[32], train[32], eval[32], trained[64] = "";
  name_files(split->source, name, sizeof name);
  rt_digits(all, sizeof all, split->source->count);
  rt_digits(train, sizeof train, split->mixture.has);
  rt_digits(eval, sizeof eval, other->mixture.samples);
  if (rt_data_trained(split->source) >= 0) {
    rt_digits(trained, sizeof trained, rt_data_trained(split->source));
    strcat(trained, " tokens trained, ");
  }
  int length = snprintf(out, size, "%s: %s %ss, %s%s %ss to train on", name, all, unit, trained, train, sample);
  if (other->source == NULL || length < 0 || (size_t)length >= size) return;
  snprintf(out + length, size - (size_t)length, ", %s to evaluate", eval);
}

void rt_data_close(struct data *data) {
  for (int i = 0; i < ACCEL_SPLITS; i++) {
    close_source(&data->source[i]);
    rt_mixture_free(&data->split[i].mixture);
  }
}
