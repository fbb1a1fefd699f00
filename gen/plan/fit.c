#include "gen/plan/fit.h"

#include <string.h>

enum { MOST_SAMPLES = 1 << 20, MOST_TOKENS = 1 << 20 };

/* ---- The sizes of a job ---- */

/* Multiples of `unit`, or with `samples` its divisors. */
struct sizes {
  int64_t unit, most, samples;
  const char *ends; /* why none is larger than `most` */
};

static const struct config_value *block_size(const struct job *job) {
  for (int i = 0; i < job->model.n_config; i++)
    if (strcmp(job->model.config[i].name, "block_size") == 0 && job->model.config[i].kind == CONFIG_INT)
      return &job->model.config[i];
  return NULL;
}

static struct sizes sizes_of(const struct job *job, enum fit_size what) {
  const int64_t step = step_of_rank(job), ranks = job_sequence_ranks(job);
  if (what == FIT_BATCH && step > 0)
    return (struct sizes){1, step, step, "it has all samples of accumulation.train_batch_size"};
  if (what == FIT_BATCH) return (struct sizes){1, MOST_SAMPLES, 0, "no larger one is looked for"};
  const struct config_value *block = block_size(job);
  const bool published = block != NULL && job->model.weights != NULL;
  return (struct sizes){ranks > 1 ? 2 * ranks : 1, /* a rank along cp has two parts of a sequence */
                        published ? block->integer : MOST_TOKENS, 0,
                        published ? "the weights have no more positions (model.config.block_size)"
                                  : "it is the most that data.sequence_length takes"};
}

/* The size after one; 0: the first. More than sizes->most: there is none. */
static int64_t size_after(const struct sizes *sizes, int64_t size) {
  do size += sizes->unit;
  while (sizes->samples > 0 && size <= sizes->most && sizes->samples % size != 0);
  return size;
}

/* The largest size that is at most a number; 0: none. */
static int64_t size_below(const struct sizes *sizes, int64_t size) {
  if (size > sizes->most) size = sizes->most;
  size -= size % sizes->unit;
  while (sizes->samples > 0 && size > 0 && sizes->samples % size != 0) size -= sizes->unit;
  return size;
}

/* The job with another size; keys of the job that follow change with it. */
static struct job resized(struct arena *arena, const struct job *job, enum fit_size what, int64_t size) {
  struct job sized = *job;
  const struct config_value *block = block_size(job);
  if (what == FIT_BATCH) {
    sized.data.batch_size = (int)size;
    if (step_of_rank(job) > 0) sized.accumulation.num_steps = (int)(step_of_rank(job) / size);
    return sized;
  }
  sized.data.sequence_length = (int)size;
  if (block == NULL || block->integer >= size) return sized;
  const size_t count = (size_t)job->model.n_config;
  sized.model.config = arena_alloc(arena, count * sizeof *sized.model.config);
  memcpy(sized.model.config, job->model.config, count * sizeof *sized.model.config);
  struct config_value *longer = &sized.model.config[block - job->model.config];
  longer->integer = size;
  longer->real = (double)size;
  return sized;
}

static struct job_override number_key(struct arena *arena, const char *key, int64_t number) {
  return (struct job_override){key, arena_printf(arena, "%lld", (long long)number)};
}

struct job_override *fit_keys(struct arena *arena, const struct job *job, enum fit_size what, int64_t size,
                              int *count) {
  struct job_override *keys = arena_alloc(arena, 2 * sizeof *keys);
  const struct config_value *block = block_size(job);
  *count = 1;
  keys[0] = what == FIT_BATCH ? number_key(arena, "data.batch_size", batch_in_file(job, size))
                              : number_key(arena, "data.sequence_length", size);
  if (what == FIT_BATCH && step_of_rank(job) > 0)
    keys[(*count)++] = number_key(arena, "accumulation.num_steps", step_of_rank(job) / size);
  if (what == FIT_SEQUENCE && block != NULL && block->integer < size)
    keys[(*count)++] = number_key(arena, "model.config.block_size", size);
  return keys;
}

/* ---- The search ---- */

struct search {
  struct arena *arena;
  const struct planner *planner;
  const struct job *job;
  enum fit_size what;
  int64_t memory;
  struct sizes sizes;
  struct {
    int64_t size, bytes;
  } before;       /* the size that fitted before, for a slope; size 0: none */
  struct fit fit; /* `size` fits; `next` does not, if it is not 0, and sizes between them have not been tried */
};

static void try_size(struct search *search, int64_t size) {
  struct fit *fit = &search->fit;
  struct arena *arena = arena_new();
  const struct job job = resized(arena, search->job, search->what, size);
  const struct trial trial = try_job(search->arena, search->planner, &job);
  arena_free(arena);
  if (trial.good && trial.bytes.total <= search->memory) {
    search->before.size = fit->size;
    search->before.bytes = fit->bytes.total;
    fit->size = size;
    fit->bytes = trial.bytes;
    return;
  }
  fit->next = size;
  fit->next_bytes = trial.bytes.total;
  fit->refusal = trial.refusal;
}

/* Where a line through the two last sizes that fitted reaches the limit: what grows with a size grows nearly by as much
 * each time. 0: there is no line. */
static int64_t by_slope(const struct search *search) {
  const struct fit *fit = &search->fit;
  const double grown = (double)(fit->bytes.total - search->before.bytes);
  if (search->before.size == 0 || grown <= 0) return 0;
  const double size = (double)fit->size +
                      (double)(search->memory - fit->bytes.total) / grown * (double)(fit->size - search->before.size);
  return size < (double)search->sizes.most ? (int64_t)size : search->sizes.most;
}

/* The size to try after `tried` others. Every third one halves what is open, or doubles the size, so that the end is
 * near also of what grows in steps. */
static int64_t guess(const struct search *search, int tried) {
  const struct fit *fit = &search->fit;
  const int64_t middle = fit->next > 0 ? fit->size + (fit->next - fit->size) / 2 : 2 * fit->size;
  const int64_t line = tried % 3 != 2 ? by_slope(search) : 0, least = size_after(&search->sizes, fit->size);
  int64_t size = size_below(&search->sizes, line > 0 ? line : middle);
  if (fit->next > 0 && size >= fit->next) size = size_below(&search->sizes, fit->next - 1);
  return size < least ? least : size;
}

struct fit fit_largest(struct arena *arena, const struct planner *planner, const struct job *job, enum fit_size what,
                       int64_t memory) {
  struct search search = {
      .arena = arena, .planner = planner, .job = job, .what = what, .memory = memory, .sizes = sizes_of(job, what)};
  struct fit *fit = &search.fit;
  if (what == FIT_SEQUENCE && job_has_rows(job)) {
    fit->refusal = "the samples are rows, whose sizes are those of the data";
    return *fit;
  }
  try_size(&search, size_after(&search.sizes, 0));
  for (int tried = 0; fit->size > 0; tried++) {
    const int64_t after = size_after(&search.sizes, fit->size);
    if (after > search.sizes.most || after == fit->next) break;
    try_size(&search, guess(&search, tried));
  }
  if (fit->size > 0 && fit->next == 0) fit->refusal = search.sizes.ends;
  return *fit;
}
