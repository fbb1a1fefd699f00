#include "gen/plan/solve.h"

#include "gen/base/quantity.h"
#include "gen/plan/graph/chunk.h"
#include "gen/plan/graph/recompute.h"
#include "gen/plan/report/report.h"

static bool fits(const struct trial *trial, const struct job *job) {
  return trial->good && (job->devices.memory == 0 || trial->bytes.total <= job->devices.memory);
}

/* ---- Ways of checkpointing ---- */

struct search {
  const struct planner *planner;
  const struct job *job;
  struct job best;     /* the cheapest setup that fits */
  double flops;        /* of it; 0: none so far */
  struct job smallest; /* the setup that takes the least */
  struct memory_bytes smallest_bytes;
};

static bool try_setup(struct search *search, const struct job *setup) {
  struct trial trial = try_job(NULL, search->planner, setup);
  if (!trial.good) return false;
  if (search->smallest_bytes.total == 0 || trial.bytes.total < search->smallest_bytes.total) {
    search->smallest = *setup;
    search->smallest_bytes = trial.bytes;
  }
  bool good = fits(&trial, setup);
  if (good && (search->flops == 0 || trial.flops < search->flops)) {
    search->best = *setup;
    search->flops = trial.flops;
  }
  return good;
}

static struct job setup_of(const struct job *job, enum checkpointing checkpointing, int number) {
  struct job setup = *job;
  setup.memory.activation_checkpointing = checkpointing;
  setup.memory.checkpoint_every = setup.memory.checkpoint_layers = number;
  return setup;
}

/* The fewest layers that fit, by halving: more of them take less. */
static void try_layers(struct search *search, int layers) {
  int low = 1, high = layers - 1;
  while (low <= high) {
    int middle = low + (high - low) / 2;
    struct job setup = setup_of(search->job, CHECKPOINTING_LAYERS, middle);
    if (try_setup(search, &setup))
      high = middle - 1;
    else
      low = middle + 1;
  }
}

static struct job function_way(struct arena *arena, const struct job *job, const char *function) {
  struct job setup = setup_of(job, CHECKPOINTING_FUNCTIONS, 0);
  setup.memory.functions = arena_alloc(arena, sizeof *setup.memory.functions);
  setup.memory.functions[0] = (struct named){.name = function};
  setup.memory.n_functions = 1;
  return setup;
}

/* From no recomputation to the most; groups of layers recompute a little more than layers, and the more the larger they
 * are, so the first that fits is the cheapest of them. */
static bool try_checkpointing(struct arena *arena, struct search *search, struct diagnostics *diags) {
  struct graph *graph = search->planner->read(search->planner->context, arena, search->job, diags);
  if (graph == NULL) return false;
  int layers = count_layers(graph);
  struct job setup = setup_of(search->job, CHECKPOINTING_NONE, 0);
  if (try_setup(search, &setup)) return true;
  setup = setup_of(search->job, CHECKPOINTING_ALL, 0);
  try_setup(search, &setup);
  const char *functions[32];
  int n = checkpointable_functions(graph, functions, 32);
  for (int i = 0; i < n; i++) {
    setup = function_way(arena, search->job, functions[i]);
    try_setup(search, &setup);
  }
  try_layers(search, layers);
  bool good = search->flops > 0;
  for (int every = 2; every <= layers && !good; every++) {
    setup = setup_of(search->job, CHECKPOINTING_EVERY, every);
    good = try_setup(search, &setup);
  }
  return true;
}

/* ---- Answers ---- */

static void put(struct job_override *found, int *count, const char *key, const char *value) {
  found[(*count)++] = (struct job_override){key, value};
}

static void put_number(struct arena *arena, struct job_override *found, int *count, const char *key, int64_t number) {
  put(found, count, key, arena_printf(arena, "%lld", (long long)number));
}

/* What the job file would say of a setup. */
static const char *checkpointing_text(struct arena *arena, const struct job *setup) {
  const char *word = job_word(setup, "memory.activation_checkpointing");
  switch (setup->memory.activation_checkpointing) {
  case CHECKPOINTING_EVERY:
    return arena_printf(arena, "%s, checkpoint_every: %d", word, setup->memory.checkpoint_every);
  case CHECKPOINTING_LAYERS:
    return arena_printf(arena, "%s, checkpoint_layers: %d", word, setup->memory.checkpoint_layers);
  case CHECKPOINTING_FUNCTIONS:
    return arena_printf(arena, "%s, checkpoint_functions: [%s]", word, setup->memory.functions[0].name);
  default:
    return word;
  }
}

static void put_checkpointing(struct arena *arena, const struct job *setup, struct job_override *found, int *count) {
  enum checkpointing chosen = setup->memory.activation_checkpointing;
  put(found, count, "memory.activation_checkpointing", job_word(setup, "memory.activation_checkpointing"));
  if (chosen == CHECKPOINTING_EVERY)
    put_number(arena, found, count, "memory.checkpoint_every", setup->memory.checkpoint_every);
  if (chosen == CHECKPOINTING_LAYERS)
    put_number(arena, found, count, "memory.checkpoint_layers", setup->memory.checkpoint_layers);
  if (chosen == CHECKPOINTING_FUNCTIONS)
    put(found, count, "memory.checkpoint_functions", arena_printf(arena, "[%s]", setup->memory.functions[0].name));
}

/* ---- Refusals ---- */

static void refuse(struct arena *arena, const struct job *job, const struct memory_bytes *bytes, const char *what,
                   struct diagnostics *diags) {
  diag_error(diags, job_where(job, "devices.memory"), "%s %s, and devices.memory is %s: %s", what,
             bytes_text(arena, bytes->total), bytes_text(arena, job->devices.memory), classes_text(arena, bytes));
}

/* Whether smaller batches of an evaluation alone would fit, and a help that names them. */
static bool help_evaluation(const struct planner *planner, const struct job *job, struct diagnostics *diags) {
  struct job less = *job;
  while (job_evaluates(&less) && less.data.eval_batch_size > 1) {
    less.data.eval_batch_size /= 2;
    struct trial trial = try_job(NULL, planner, &less);
    if (!fits(&trial, &less)) continue;
    diag_help(diags, "it fits with data.eval_batch_size: %lld",
              (long long)batch_in_file(&less, less.data.eval_batch_size));
    return true;
  }
  return false;
}

/* What would fit, found by planning: smaller batches of an evaluation, chunks of cross-entropy, a form of
 * checkpointing, or smaller micro-batches. */
static void help_to_fit(struct arena *arena, const struct planner *planner, const struct job *job,
                        struct diagnostics *diags) {
  if (help_evaluation(planner, job, diags)) return;
  struct job chunked = *job;
  if (chunk_wanted(job) == 0) chunked.memory.cross_entropy_chunk = CHUNK_AUTO;
  struct trial trial = try_job(NULL, planner, &chunked);
  struct search search = {.planner = planner, .job = job};
  if (try_checkpointing(arena, &search, diags) && search.flops > 0) {
    diag_help(diags, "it fits with memory.activation_checkpointing: %s", checkpointing_text(arena, &search.best));
    if (fits(&trial, &chunked)) diag_help(diags, "or with memory.cross_entropy_chunk: auto");
    return;
  }
  search = (struct search){.planner = planner, .job = &chunked};
  if (!try_checkpointing(arena, &search, diags)) return;
  struct job less = search.flops > 0 ? search.best : search.smallest;
  trial = try_job(NULL, planner, &less);
  while (!fits(&trial, &less) && less.data.batch_size > 1) {
    less.data.batch_size /= 2;
    trial = try_job(NULL, planner, &less);
  }
  const char *what = fits(&trial, &less) ? "it fits"
                                         : arena_printf(arena, "the least that it could take is %s,",
                                                        bytes_text(arena, trial.bytes.total));
  diag_help(diags,
            "%s with data.batch_size: %lld, memory.cross_entropy_chunk: auto and memory.activation_checkpointing: %s",
            what, (long long)batch_in_file(&less, less.data.batch_size), checkpointing_text(arena, &less));
}

/* With which reserve the modules in memory would be fewer by what lacks. */
static void help_to_stream(const struct program *program, struct diagnostics *diags) {
  diag_help(diags, "more layers stream with memory.reserve: %lldKiB", (long long)(reserve_of(program) / 1024 + 1));
}

bool check_memory(const struct planner *planner, const struct program *program, struct diagnostics *diags) {
  const struct job *job = program->job;
  if (planner->request.shows_map || job->devices.memory == 0 || program->figures.bytes.total <= job->devices.memory)
    return true;
  refuse(program->arena, job, &program->figures.bytes, "the program takes", diags);
  if (program->kind == PROGRAM_TRAIN) help_to_fit(program->arena, planner, job, diags);
  const bool streams = program->map != NULL && program->map->places.count > 1;
  if (streams && job->memory.n_places == 0) help_to_stream(program, diags);
  return false;
}

/* `without`: the job less one measure. */
static void add_saving(const struct planner *planner, struct program *program, const char *measure,
                       const struct job *without) {
  struct trial trial = try_job(NULL, planner, without);
  if (!trial.good) return;
  program->figures.savings[program->figures.n_savings++] =
      (struct saving){.measure = measure,
                      .bytes = trial.bytes.total - program->figures.bytes.total,
                      .flops = program->figures.flops_per_step - trial.flops};
}

void find_savings(const struct planner *planner, struct program *program) {
  const struct job *job = program->job;
  if (program->kind != PROGRAM_TRAIN) return;
  struct job without = setup_of(job, CHECKPOINTING_NONE, 0);
  if (job->memory.activation_checkpointing != CHECKPOINTING_NONE)
    add_saving(planner, program, "activation checkpointing", &without);
  without = *job;
  without.memory.cross_entropy_chunk = 0;
  bool asked = job->memory.cross_entropy_chunk != 0 && job->memory.cross_entropy_chunk != CHUNK_DEVICE;
  if (asked) add_saving(planner, program, "cross-entropy in chunks", &without);
}

/* ---- Numbers that the job leaves open ---- */

static bool solve_checkpointing(struct arena *arena, const struct planner *planner, const struct job *job,
                                struct diagnostics *diags, struct job_override *found, int *count) {
  struct search search = {.planner = planner, .job = job};
  if (!try_checkpointing(arena, &search, diags)) return false;
  if (search.flops > 0) {
    put_checkpointing(arena, &search.best, found, count);
    return true;
  }
  if (search.smallest_bytes.total == 0) {
    struct job setup = setup_of(job, CHECKPOINTING_NONE, 0);
    plan_least(arena, planner, &setup, diags, NULL, NULL); /* says why it cannot be planned */
    return false;
  }
  refuse(arena, job, &search.smallest_bytes,
         arena_printf(arena, "no recomputation is enough: with activation_checkpointing: %s the program takes",
                      checkpointing_text(arena, &search.smallest)),
         diags);
  help_to_fit(arena, planner, job, diags);
  return false;
}

/* The largest micro-batch that fits: a power of two or, when the samples of a step are given, a divisor of them. */
static int solve_batch(const struct planner *planner, const struct job *job, struct memory_bytes *least) {
  enum { MOST = 1 << 20 };
  int64_t step = step_of_rank(job);
  int best = 0;
  for (int64_t size = 1; size <= (step > 0 ? step : MOST); size = step > 0 ? size + 1 : size * 2) {
    if (step > 0 && step % size != 0) continue;
    struct job candidate = *job;
    candidate.data.batch_size = (int)size;
    if (job->accumulation.num_steps == 0) candidate.accumulation.num_steps = (int)(step / size);
    struct trial trial = try_job(NULL, planner, &candidate);
    if (size == 1) *least = trial.bytes;
    if (!fits(&trial, &candidate)) break;
    best = (int)size;
  }
  return best;
}

/* Not even one sample fits, or the job cannot be planned at all. */
static void refuse_one(struct arena *arena, const struct planner *planner, const struct job *job,
                       const struct memory_bytes *least, struct diagnostics *diags) {
  struct job one = *job;
  one.data.batch_size = 1;
  if (job->accumulation.num_steps == 0) one.accumulation.num_steps = (int)step_of_rank(job);
  if (least->total == 0) {
    plan_least(arena, planner, &one, diags, NULL, NULL);
    return;
  }
  refuse(arena, job, least, "with data.batch_size: 1 the program takes", diags);
  help_to_fit(arena, planner, &one, diags);
}

/* The key that is left open becomes the samples of a step of one rank over `by`. */
static bool divide(struct arena *arena, const struct job *job, const char *key, int64_t by, int *quotient,
                   struct diagnostics *diags, struct job_override *found, int *count) {
  int64_t samples = step_of_rank(job), below = by < samples ? by : samples;
  if (samples % by == 0) {
    *quotient = (int)(samples / by);
    put_number(arena, found, count, key, samples / by);
    return true;
  }
  while (samples % below != 0) below--;
  diag_error(diags, job_where(job, "accumulation.train_batch_size"), "%lld samples of a step do not divide by %lld",
             (long long)samples, (long long)by);
  diag_help(diags, "they divide by %lld", (long long)below);
  return false;
}

static bool solve_sizes(struct arena *arena, const struct planner *planner, const struct job *job,
                        struct diagnostics *diags, struct job_override *found, int *count, struct job *solved) {
  struct memory_bytes least = {0};
  if (!step_divides(job, diags)) return false;
  if (job->data.batch_size == 0 && job->accumulation.num_steps > 0 && job->accumulation.train_batch_size > 0)
    return divide(arena, job, "data.batch_size", job->accumulation.num_steps, &solved->data.batch_size, diags, found,
                  count);
  if (job->data.batch_size == 0) {
    solved->data.batch_size = solve_batch(planner, job, &least);
    if (solved->data.batch_size == 0) return refuse_one(arena, planner, job, &least, diags), false;
    put_number(arena, found, count, "data.batch_size", solved->data.batch_size);
  }
  if (job->accumulation.num_steps > 0) return true;
  return divide(arena, job, "accumulation.num_steps", solved->data.batch_size, &solved->accumulation.num_steps, diags,
                found, count);
}

/* What does not train needs none of them: the smallest that fits the samples of a step where these are given. */
static void leave_open(struct arena *arena, const struct job *job, struct job *solved, struct job_override *found,
                       int *count) {
  const int64_t ranks = job_training_ranks(job), samples = job->accumulation.train_batch_size / ranks;
  int64_t batch = job->data.batch_size, steps = job->accumulation.num_steps;
  if (batch == 0) {
    batch = samples > 0 && steps > 0 ? samples / steps : 1;
    put_number(arena, found, count, "data.batch_size", batch);
  }
  if (steps == 0) {
    steps = samples > 0 ? samples / batch : 1;
    put_number(arena, found, count, "accumulation.num_steps", steps);
  }
  solved->data.batch_size = (int)batch;
  solved->accumulation.num_steps = (int)steps;
  if (job->memory.activation_checkpointing != CHECKPOINTING_AUTO) return;
  solved->memory.activation_checkpointing = CHECKPOINTING_NONE;
  put(found, count, "memory.activation_checkpointing", "none");
}

/* Of a map that the plan makes, with a disk, where the job says nothing of it. */
static bool leaves_reserve_open(const struct job *job) {
  return job->data.batch_size == 0 && job->memory.maps && job->memory.n_places == 0 && job->memory.reserve == 0 &&
         job->devices.memory > 0 && job->devices.limits.disk != NULL;
}

/* The reserve with which as many modules are in memory as fit with all else that the program takes, which changes with
 * the layers that stream. Nothing is found where none is needed, or none is enough: then the plan says so. */
static void solve_reserve(struct arena *arena, const struct planner *planner, const struct job *job,
                          struct job_override *found, int *count) {
  struct job candidate = *job;
  struct trial trial = try_job(NULL, planner, &candidate);
  while (trial.good && trial.bytes.total > job->devices.memory && trial.reserve > candidate.memory.reserve) {
    candidate.memory.reserve = trial.reserve;
    trial = try_job(NULL, planner, &candidate);
  }
  const bool fits = trial.good && trial.bytes.total <= job->devices.memory;
  if (fits && candidate.memory.reserve > 0) put_number(arena, found, count, "memory.reserve", candidate.memory.reserve);
}

bool is_open(const struct job *job) {
  return job->data.batch_size == 0 || job->accumulation.num_steps == 0 ||
         job->memory.activation_checkpointing == CHECKPOINTING_AUTO;
}

bool solve(struct arena *arena, const struct planner *planner, const struct job *job, struct diagnostics *diags,
           struct job_override *found, int *count) {
  struct job solved = *job;
  *count = 0;
  if (planner->request.kind != PROGRAM_TRAIN) {
    leave_open(arena, job, &solved, found, count);
    if (leaves_reserve_open(job)) solve_reserve(arena, planner, &solved, found, count);
    return true;
  }
  if (!solve_sizes(arena, planner, job, diags, found, count, &solved)) return false;
  if (job->memory.activation_checkpointing != CHECKPOINTING_AUTO) return true;
  return solve_checkpointing(arena, planner, &solved, diags, found, count);
}
