#include "data.h"

#include "digits.h"
#include "token_file.h"

#include <inttypes.h>
#include <stdio.h>

static const char *const split_names[ACCEL_SPLITS] = {"train", "eval"};

static bool is_table(const struct data_file *file) {
  return file->format == ACCEL_CSV;
}

static int64_t file_count(const struct data_file *file) {
  return is_table(file) ? file->table.rows : file->tokens.count;
}

static bool open_table(struct data_file *file, const struct accel_program *program, struct problem *problem) {
  int columns = program->features + 1;
  if (!rt_csv_read(&file->table, columns, file->path, (const char *)file->mapping.bytes, file->mapping.size, problem))
    return false;
  rt_unmap(&file->mapping); /* the text is not needed any more */
  return !program->label_is_class || rt_table_check_classes(&file->table, program->classes, file->path, problem);
}

/* Looks at every token once, and lets go of what was looked at. */
static bool check_tokens(const struct data_file *file, int64_t vocabulary, struct problem *problem) {
  enum { AT_ONCE = 16 << 20 };
  const struct tokens *tokens = &file->tokens;
  if (file->format == ACCEL_TOKENS &&
      !rt_token_file_verify(file->path, file->mapping.bytes, file->mapping.size, rt_map_forget, problem))
    return false;
  if (rt_tokens_need_no_check(tokens, vocabulary)) return true;
  for (int64_t first = 0; first < tokens->count; first += AT_ONCE) {
    int64_t count = tokens->count - first < AT_ONCE ? tokens->count - first : AT_ONCE;
    if (!rt_tokens_check(tokens, first, count, file->path, vocabulary, problem)) return false;
    if (tokens->count > AT_ONCE) rt_map_forget(tokens->bytes + first * tokens->width, (size_t)(count * tokens->width));
  }
  return true;
}

static bool open_file(struct data_file *file, struct accel_source source, const struct accel_program *program,
                      enum accel_split split, struct problem *problem) {
  char cure[96];
  snprintf(cure, sizeof cure, "correct data.%s.path in the job%s", split_names[split],
           split == ACCEL_TRAIN ? ", or name a file with --data FILE" : "");
  *file = (struct data_file){.path = source.path, .format = source.format};
  if (source.path == NULL) return true;
  if (!rt_map(&file->mapping, source.path, cure, problem)) return false;
  if (is_table(file)) return open_table(file, program, problem);
  return rt_tokens_find(&file->tokens, source.format, source.path, file->mapping.bytes, file->mapping.size, problem) &&
         check_tokens(file, program->vocabulary, problem);
}

static struct dealing dealing_of(const struct accel_program *program, struct world world) {
  const struct accel_rest *rest = &program->rest;
  return (struct dealing){program->batch_size, world.size, rest->kept, rest->even, rest->dispatched};
}

static void cut(struct data *data, const struct data_file *file, const struct accel_program *program,
                enum accel_split which, int64_t first, int64_t count) {
  struct data_split *split = &data->split[which];
  split->file = file;
  split->order = is_table(file) ? rt_order_of_rows(program->data_seed, which, program->shuffle, first, count)
                                : rt_order_of_windows(program->data_seed, which, program->shuffle, first, count,
                                                      program->sequence_length);
  rt_order_deal(&split->order, dealing_of(program, data->world));
}

static void cut_splits(struct data *data, const struct accel_program *program) {
  const struct data_file *train = &data->file[ACCEL_TRAIN], *eval = &data->file[ACCEL_EVAL];
  int64_t all = file_count(train), kept = all;
  if (eval->path == NULL && program->eval_fraction > 0) {
    kept = (int64_t)((double)all * (1.0 - program->eval_fraction)); /* as nanoGPT cuts: int(n * 0.9) */
    cut(data, train, program, ACCEL_EVAL, kept, all - kept);
  }
  if (eval->path != NULL) cut(data, eval, program, ACCEL_EVAL, 0, file_count(eval));
  if (train->path != NULL) cut(data, train, program, ACCEL_TRAIN, 0, kept);
}

static bool check_size(const struct data_split *split, const struct accel_program *program, enum accel_split which,
                       int64_t needed, struct problem *problem) {
  if (split->file == NULL) {
    rt_problem(problem, "no data to %s", which == ACCEL_TRAIN ? "train on" : "evaluate on");
    return rt_help(problem, which == ACCEL_TRAIN ? "name a file with --data FILE, or set data.train.path in the job"
                                                 : "set data.eval.path or data.eval_fraction in the job");
  }
  if (split->order.samples >= needed) return true;
  const char *unit = is_table(split->file) ? "row" : "window";
  rt_problem(problem, "%s: %" PRId64 " %ss for %s (of %" PRId64 " tokens each) are too few: %" PRId64 " needed",
             split->file->path, split->order.samples, unit, split_names[which], program->sequence_length, needed);
  if (is_table(split->file))
    rt_problem(problem, "%s: %" PRId64 " rows for %s are too few: %" PRId64 " needed", split->file->path,
               split->order.samples, split_names[which], needed);
  return rt_help(problem, which == ACCEL_TRAIN ? "give a larger file with --data, or make the batch or a window smaller"
                                               : "give a larger file, or a larger data.eval_fraction");
}

/* Steps that were counted in epochs are those of so many samples alone. */
static bool check_counted(const struct data *data, const struct accel_program *program, struct problem *problem) {
  const struct data_split *split = &data->split[ACCEL_TRAIN];
  if (program->samples == 0 || split->order.samples == program->samples) return true;
  rt_problem(problem,
             "%s: %" PRId64 " %ss to train on, but the %" PRId64 " steps of this program were counted from %" PRId64,
             split->file->path, split->order.samples, is_table(split->file) ? "row" : "window", program->steps,
             program->samples);
  return rt_help(problem, "generate the program again with this data, or give the job training.steps");
}

static bool check_sizes(const struct data *data, const struct accel_program *program, struct problem *problem) {
  int64_t round = program->rest.kept ? 1 : program->batch_size * data->world.size;
  if (!check_size(&data->split[ACCEL_TRAIN], program, ACCEL_TRAIN, round, problem)) return false;
  if (!check_counted(data, program, problem)) return false;
  return program->eval_every <= 0 || check_size(&data->split[ACCEL_EVAL], program, ACCEL_EVAL, 1, problem);
}

int64_t rt_data_position(const struct data *data, enum accel_split which, int64_t position) {
  const struct data_split *split = &data->split[which];
  const struct dealing *dealing = &split->order.dealing;
  if (which == ACCEL_EVAL) return position;
  return rt_dealt_first(dealing, position / dealing->batch, data->world.rank) + position % dealing->batch +
         split->shift;
}

bool rt_data_open(struct data *data, const struct accel_program *program, struct world world, const char *train_path,
                  struct problem *problem) {
  *data = (struct data){.sequence_length = program->sequence_length, .vocabulary = program->vocabulary, .world = world};
  for (enum accel_split split = 0; split < ACCEL_SPLITS; split++) {
    struct accel_source source = program->source[split];
    if (split == ACCEL_TRAIN && train_path != NULL) source.path = train_path;
    if (!open_file(&data->file[split], source, program, split, problem)) return false;
  }
  cut_splits(data, program);
  return check_sizes(data, program, problem);
}

void rt_data_describe(const struct data *data, char *out, size_t size) {
  const struct data_file *file = &data->file[ACCEL_TRAIN];
  const char *samples = is_table(file) ? "rows" : "windows", *units = is_table(file) ? "rows" : "tokens";
  char all[32], train[32], eval[32];
  rt_digits(all, sizeof all, file_count(file));
  rt_digits(train, sizeof train, data->split[ACCEL_TRAIN].order.samples);
  rt_digits(eval, sizeof eval, data->split[ACCEL_EVAL].order.samples);
  int length = snprintf(out, size, "%s: %s %s, %s %s to train on", file->path, all, units, train, samples);
  if (data->split[ACCEL_EVAL].file == NULL || length < 0 || (size_t)length >= size) return;
  snprintf(out + length, size - (size_t)length, ", %s to evaluate", eval);
}

void rt_data_close(struct data *data) {
  for (int i = 0; i < ACCEL_SPLITS; i++) {
    rt_unmap(&data->file[i].mapping);
    rt_table_free(&data->file[i].table);
  }
}
