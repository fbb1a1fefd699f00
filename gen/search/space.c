#include "gen/search/space.h"

#include <stdlib.h>

enum { MOST_RANKS = 64, MOST_OF_TWO = 32, MOST_SAMPLES = 1024, MOST_CUTS = 256 };

/* ---- Divisions ---- */

static bool is_length(const struct hardware *hardware, int64_t ranks) {
  if (hardware->ranks % ranks != 0) return false;
  if (ranks <= hardware->per_node) return hardware->per_node % ranks == 0;
  int64_t machines = ranks / hardware->per_node;
  return ranks % hardware->per_node == 0 && (machines & (machines - 1)) == 0;
}

/* Whether ranks of the same axis that divide a layer, but fewer, had a plan. */
static bool exceeds_failed(const int64_t *failed, int n_failed, int64_t ranks) {
  for (int i = 0; i < n_failed; i++)
    if (ranks % failed[i] == 0) return true;
  return false;
}

/* tp times another axis; AXES: of none. */
static struct cut cut_of(int64_t tp, enum axis axis, int64_t ranks, bool splits_sequence) {
  struct cut cut = {.tp = tp, .cp = 1, .sp = 1, .ep = 1, .splits_sequence = splits_sequence};
  if (axis == AXIS_CP) cut.cp = ranks;
  if (axis == AXIS_SP) cut.sp = ranks;
  if (axis == AXIS_EP) cut.ep = ranks;
  return cut;
}

/* The job's own way, or with `auto` none and all. */
static int checkpointings_of(const struct job *job, enum checkpointing modes[2]) {
  modes[0] = job->memory.activation_checkpointing;
  if (modes[0] != CHECKPOINTING_AUTO) return 1;
  modes[0] = CHECKPOINTING_NONE;
  modes[1] = CHECKPOINTING_ALL;
  return 2;
}

/* Plans a cut in each way of recomputation; false where none has a plan. */
static bool add_cut(struct arena *arena, const struct planner *planner, struct search_result *result, struct cut cut,
                    const char **why) {
  enum checkpointing modes[2];
  int n_modes = checkpointings_of(result->job, modes), before = result->n_divisions;
  for (int i = 0; i < n_modes && result->n_divisions < MOST_CUTS; i++) {
    cut.checkpointing = modes[i];
    const struct division *division = divide_job(arena, planner, result->job, cut, why);
    if (division == NULL) break;
    result->divisions[result->n_divisions++] = division;
  }
  return result->n_divisions > before;
}

/* tp alone (AXES), or `tp` ranks times those of another axis, up to `most` together. */
static void add_axis(struct arena *arena, const struct planner *planner, struct search_result *result, int64_t tp,
                     enum axis axis, bool splits_sequence, int64_t most) {
  int64_t failed[MOST_RANKS];
  int n_failed = 0;
  const char *why;
  for (int64_t ranks = 2; tp * ranks <= most; ranks++) {
    if (!is_length(&result->hardware, tp * ranks) || exceeds_failed(failed, n_failed, ranks)) continue;
    bool alone = axis == AXES;
    const struct cut cut = cut_of(alone ? ranks : tp, axis, ranks, splits_sequence);
    if (!add_cut(arena, planner, result, cut, &why)) failed[n_failed++] = ranks;
  }
}

bool find_divisions(struct arena *arena, const struct planner *planner, struct search_result *result,
                    struct diagnostics *diags) {
  const char *why = NULL;
  result->divisions = arena_alloc(arena, MOST_CUTS * sizeof(struct division *));
  if (!add_cut(arena, planner, result, cut_of(1, AXES, 1, false), &why)) {
    diag_error(diags, job_where(result->job, "parallelism"), "the job cannot be planned on one rank: %s", why);
    return false;
  }
  add_axis(arena, planner, result, 1, AXES, false, MOST_RANKS);
  add_axis(arena, planner, result, 1, AXES, true, MOST_RANKS);
  add_axis(arena, planner, result, 1, AXIS_CP, false, MOST_RANKS);
  add_axis(arena, planner, result, 1, AXIS_SP, false, MOST_RANKS);
  add_axis(arena, planner, result, 1, AXIS_EP, false, MOST_RANKS);
  for (int64_t tp = 2; tp <= result->hardware.per_node && tp <= MOST_OF_TWO; tp++) {
    if (!is_length(&result->hardware, tp)) continue;
    add_axis(arena, planner, result, tp, AXIS_CP, false, MOST_OF_TWO);
    add_axis(arena, planner, result, tp, AXIS_SP, false, MOST_OF_TWO);
  }
  return true;
}

/* ---- Meshes ---- */

struct space {
  struct arena *arena;
  struct search_result *result;
  const struct timing *timings[MOST_SAMPLES + 1]; /* of the current division, by samples; NULL: not requested yet */
  int capacity;
};

static const struct timing *timing_in(struct space *space, const struct division *division, int64_t samples) {
  if (space->timings[samples] == NULL) {
    struct timing *timing = arena_alloc(space->arena, sizeof *timing);
    *timing = timing_of(division, &space->result->hardware, samples);
    space->timings[samples] = timing;
  }
  return space->timings[samples];
}

/* Keeps a mesh if it fits and is faster than `best`; whether it fits. */
static bool try_mesh(struct space *space, const struct mesh *mesh, struct candidate *best) {
  struct search_result *result = space->result;
  const struct estimate estimate = estimate_mesh(mesh, result->job, &result->hardware, result->model_flops);
  bool fits = estimate.bytes <= (double)result->hardware.memory;
  result->n_meshes++;
  result->n_fitting += fits;
  if (result->least == 0 || estimate.bytes < (double)result->least) result->least = (int64_t)estimate.bytes;
  if (fits && (best->mesh.division == NULL || estimate.seconds < best->estimate.seconds))
    *best = (struct candidate){.mesh = *mesh, .estimate = estimate};
  return fits;
}

static bool is_open_to(int64_t given, int64_t value) {
  return given == 0 || given == value;
}

/* Every number of chunks that the order has: layers of a stage that divide, and stages that divide micro-batches. */
static void try_chunks(struct space *space, struct mesh mesh, struct candidate *best, bool *fits) {
  if (mesh.order != ORDER_INTERLEAVED) {
    *fits |= try_mesh(space, &mesh, best);
    return;
  }
  int64_t layers = mesh.division->layers / mesh.stages;
  for (mesh.chunks = 2; mesh.chunks <= layers && mesh.steps % mesh.stages == 0; mesh.chunks++)
    if (layers % mesh.chunks == 0) *fits |= try_mesh(space, &mesh, best);
}

/* Memory grows with a micro-batch: the first that does not fit is the last one tried. */
static void try_batches(struct space *space, struct mesh mesh) {
  const struct job *job = space->result->job;
  int64_t groups = mesh.replicas * mesh.shards * mesh.division->cut.ep;
  if (job->accumulation.train_batch_size % groups != 0) return;
  int64_t samples = job->accumulation.train_batch_size / groups;
  struct candidate best = {0};
  for (mesh.batch = 1; mesh.batch <= samples && mesh.batch <= MOST_SAMPLES; mesh.batch++) {
    if (samples % mesh.batch != 0 || !is_open_to(job->data.batch_size, mesh.batch)) continue;
    mesh.steps = samples / mesh.batch;
    if (!is_open_to(job->accumulation.num_steps, mesh.steps)) continue;
    if (mesh.order == ORDER_INTERLEAVED && mesh.steps % mesh.stages != 0) continue;
    mesh.timing = timing_in(space, mesh.division, mesh.batch);
    bool fits = false;
    try_chunks(space, mesh, &best, &fits);
    if (!fits) break;
  }
  if (best.mesh.division == NULL) return;
  struct search_result *result = space->result;
  best.number = result->n_candidates;
  result->candidates =
      arena_grow(space->arena, result->candidates, result->n_candidates, &space->capacity, sizeof *result->candidates);
  result->candidates[result->n_candidates++] = best;
}

static void try_orders(struct space *space, struct mesh mesh) {
  for (int order = mesh.stages == 1 ? ORDER_NONE : ORDER_GPIPE; order < ORDERS; order++) {
    mesh.order = (enum order)order;
    try_batches(space, mesh);
    if (order == ORDER_NONE) break;
  }
}

/* All ranks of `ranks` that are data-parallel, whole or divided. */
static void try_data_parallel(struct space *space, struct mesh mesh, int64_t ranks) {
  mesh.replicas = ranks;
  mesh.shards = 1;
  try_orders(space, mesh);
  for (mesh.shards = 2; mesh.shards <= ranks; mesh.shards++) {
    if (ranks % mesh.shards != 0) continue;
    mesh.replicas = ranks / mesh.shards;
    for (mesh.zero_stage = 1; mesh.zero_stage <= 3; mesh.zero_stage++) try_orders(space, mesh);
  }
}

static void try_division(struct space *space, const struct division *division) {
  const struct cut *cut = &division->cut;
  int64_t ranks = space->result->hardware.ranks / (cut->tp * cut->cp * cut->sp * cut->ep);
  struct mesh mesh = {.division = division, .chunks = 1};
  for (size_t i = 0; i <= MOST_SAMPLES; i++) space->timings[i] = NULL;
  for (mesh.stages = 1; mesh.stages <= ranks && (mesh.stages == 1 || mesh.stages <= division->layers); mesh.stages++)
    if (ranks % mesh.stages == 0 && (mesh.stages == 1 || division->layers % mesh.stages == 0))
      try_data_parallel(space, mesh, ranks / mesh.stages);
}

static int by_time(const void *a, const void *b) {
  const struct candidate *p = a, *q = b;
  if (p->estimate.seconds != q->estimate.seconds) return p->estimate.seconds < q->estimate.seconds ? -1 : 1;
  if (p->estimate.bytes != q->estimate.bytes) return p->estimate.bytes < q->estimate.bytes ? -1 : 1;
  return p->number - q->number;
}

void find_candidates(struct arena *arena, struct search_result *result) {
  struct space space = {.arena = arena, .result = result};
  for (int i = 0; i < result->n_divisions; i++) try_division(&space, result->divisions[i]);
  if (result->n_candidates > 0)
    qsort(result->candidates, (size_t)result->n_candidates, sizeof *result->candidates, by_time);
}
