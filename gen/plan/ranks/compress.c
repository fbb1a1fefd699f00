#include "gen/plan/ranks/compress.h"

#include <math.h>

#include "gen/plan/ranks/collectives.h"
#include "gen/plan/ranks/sequence.h"
#include "gen/program/sending.h"
#include "gen/program/storage.h"

static int64_t smaller(int64_t a, int64_t b) {
  return a < b ? a : b;
}

static int64_t aligned(int64_t elements) {
  return arena_aligned(elements * dtype_size(DTYPE_FLOAT32)) / dtype_size(DTYPE_FLOAT32);
}

static void add_matrix(struct program *program, struct factored matrix) {
  struct compression *compression = &program->ranks.compression;
  matrix.at = compression->elements;
  matrix.left = compression->left;
  matrix.right = compression->right;
  ARENA_PUSH(program->arena, *compression, matrix);
  compression->elements += aligned(matrix.rows * matrix.columns);
  compression->left += aligned(matrix.rows * matrix.rank);
  compression->right += aligned(matrix.columns * matrix.rank);
}

static void add(struct program *program, const char *what, int64_t first, int64_t count) {
  struct collective collective = {.kind = COLLECTIVE_ALL_REDUCE,
                                  .axis = program->mesh.batches.items[0],
                                  .what = what,
                                  .width = wire_width(program->job),
                                  .first = first,
                                  .count = count,
                                  .times = 1,
                                  .from = program->job->parallelism.power_sgd.start};
  if (count > 0) ARENA_PUSH(program->arena, program->ranks.collectives, collective);
}

/* ---- By parameter ---- */

/* Whether its factors are so much smaller. */
static bool matrix_of(const struct program *program, const struct weight *weight, struct factored *matrix) {
  const struct shape shape = weight->parameter->shape;
  int64_t count = shape_count(shape), rows = shape.rank > 0 ? shape.dim[0] : 1, columns = count / rows;
  int64_t rank = smaller(program->job->parallelism.power_sgd.rank, smaller(rows, columns));
  double rate = program->job->parallelism.power_sgd.least_rate;
  *matrix = (struct factored){.what = weight->path,
                              .first = weight->gradient / dtype_size(DTYPE_FLOAT32),
                              .count = count,
                              .rows = rows,
                              .columns = columns,
                              .rank = rank};
  return (double)((rows + columns) * rank) * rate < (double)count;
}

/* All that is sent whole, neighbours as one. */
static void add_parameters(struct program *program) {
  int64_t size = dtype_size(DTYPE_FLOAT32), from = 0, end = 0;
  const struct weight *first = NULL;
  int others = 0;
  program->ranks.compression.first_bucket = program->ranks.collectives.count;
  for (int i = 0; i <= program->weights->count; i++) {
    const struct weight *weight = i < program->weights->count ? &program->weights->items[i] : NULL;
    if (weight != NULL && weight->gradient < 0) continue;
    struct factored matrix;
    bool compressed = weight != NULL && matrix_of(program, weight, &matrix);
    int64_t at = weight != NULL ? weight->gradient / size : -1;
    if (first != NULL && (weight == NULL || compressed || at != end)) {
      const char *more = others > 0 ? arena_printf(program->arena, " and %d more", others) : "";
      add(program, arena_printf(program->arena, "gradients of %s%s", first->path, more), from, end - from);
      first = NULL;
    }
    if (compressed) add_matrix(program, matrix);
    if (weight == NULL || compressed) continue;
    others = first == NULL ? 0 : others + 1;
    if (first == NULL) from = at;
    if (first == NULL) first = weight;
    end = at + aligned(shape_count(weight->parameter->shape));
  }
  program->ranks.compression.n_buckets = program->ranks.collectives.count - program->ranks.compression.first_bucket;
}

/* ---- All as squares ---- */

static void add_squares(struct program *program) {
  int64_t most = program->job->parallelism.bucket_bytes / dtype_size(DTYPE_FLOAT32);
  if (most < 16) most = 16;
  for (int64_t first = 0; first < program->ranks.compression.gradients; first += most) {
    int64_t count = smaller(most, program->ranks.compression.gradients - first), side = (int64_t)sqrt((double)count);
    while (side * side < count) side++;
    int64_t rank = smaller(program->job->parallelism.power_sgd.rank, side);
    const char *what = arena_printf(program->arena, "gradients from %lld on", (long long)first);
    add_matrix(program, (struct factored){
                            .what = what, .first = first, .count = count, .rows = side, .columns = side, .rank = rank});
  }
}

/* What is on its way at once: the gradients that are sent whole, or the factors of one side. */
static int64_t wire_elements(const struct program *program) {
  const struct compression *compression = &program->ranks.compression;
  bool whole = program->job->parallelism.power_sgd.start > 0 || compression->n_buckets > 0;
  int64_t elements = whole ? compression->gradients : 0;
  if (elements < compression->left) elements = compression->left;
  return elements < compression->right ? compression->right : elements;
}

void plan_compression(struct program *program) {
  struct compression *compression = &program->ranks.compression;
  if (program->entry.backward == NULL) return;
  compression->gradients = all_gradients(program);
  if (program->job->parallelism.power_sgd.start > 0) {
    add(program, "gradients of all parameters", 0, compression->gradients);
    struct collective *whole = &program->ranks.collectives.items[0];
    whole->until = whole->from;
    whole->from = 0;
  }
  if (program->job->parallelism.power_sgd.batched)
    add_squares(program);
  else
    add_parameters(program);
  add(program, "left factors of gradients", 0, compression->left);
  add(program, "right factors of gradients", 0, compression->right);
  if (program->job->parallelism.wire != PRECISION_NO) program->ranks.wire = wire_elements(program);
  bool counts = program->step_end.counts;
  add(program, counts ? "the loss, and what it is a mean over" : "the loss", 0, counts ? 2 : 1);
  struct collective *loss = &program->ranks.collectives.items[program->ranks.collectives.count - 1];
  loss->width = (int64_t)sizeof(double);
  loss->from = 0;
  int before = program->ranks.collectives.count;
  sequence_collectives(program);
  compression->first_bucket += program->ranks.collectives.count - before; /* what comes before them in a step */
  program->ranks.sends_always = true;                                     /* gradients are sent after the backward */
}

int64_t compression_bytes(const struct program *program) {
  const struct compression *compression = &program->ranks.compression;
  bool squares = program->job->parallelism.power_sgd.batched;
  bool persistent = program->job->parallelism.power_sgd.warm; /* right factors: from step to step */
  int64_t elements = compression->left + (persistent ? 0 : compression->right) + (squares ? compression->elements : 0);
  return elements * dtype_size(DTYPE_FLOAT32);
}

static void add_state(struct program *program, const char *name, const char *member, int64_t count) {
  struct state_slice *slice = arena_alloc(program->arena, sizeof *slice);
  slice->shape = shape_of(1, count);
  struct state state = {.file = "progress",
                        .name = name,
                        .member = member,
                        .dtype = DTYPE_FLOAT32,
                        .count = count,
                        .slices = slice,
                        .n_slices = 1};
  if (count > 0) ARENA_PUSH(program->arena, program->states, state);
}

void compression_states(struct program *program) {
  const struct compression *compression = &program->ranks.compression;
  if (program->job->parallelism.by_hook) add_state(program, "bucket_state", "bucket_state", compression->elements);
  if (program->job->parallelism.power_sgd.warm) add_state(program, "power_sgd_q", "right_factors", compression->right);
  if (program->job->parallelism.power_sgd.feedback)
    add_state(program, "power_sgd_error", "missed", compression->elements);
}
