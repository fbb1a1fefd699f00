#include "gen/plan/ranks/compress.h"

#include <math.h>

#include "gen/plan/ranks/collectives.h"
#include "gen/plan/ranks/sequence.h"
#include "gen/plan/ranks/stage_bytes.h"
#include "gen/program/sending.h"
#include "gen/program/stage_parameters.h"
#include "gen/program/storage.h"
#include "gen/program/target.h"

static int64_t smaller(int64_t a, int64_t b) {
  return a < b ? a : b;
}

static int64_t aligned(int64_t elements) {
  return arena_aligned(elements * dtype_size(DTYPE_FLOAT32)) / dtype_size(DTYPE_FLOAT32);
}

/* Gives a matrix its offsets. */
static void place_matrix(struct program *program, struct factored *matrix) {
  struct compression *compression = &program->ranks.compression;
  matrix->at = compression->elements;
  matrix->left = compression->left;
  matrix->right = compression->right;
  compression->elements += aligned(matrix->rows * matrix->columns);
  compression->left += aligned(matrix->rows * matrix->rank);
  compression->right += aligned(matrix->columns * matrix->rank);
}

/* ---- Ranges ---- */

/* Extends the last range by what follows it. */
static void add_range(struct program *program, struct sent_range_list *list, struct sent_range range) {
  struct sent_range *last = list->count > 0 ? &list->items[list->count - 1] : NULL;
  if (last == NULL || last->stage != range.stage || last->first + last->count != range.first) {
    ARENA_PUSH(program->arena, *list, range);
    return;
  }
  last->more++;
  last->count += range.count;
  last->n_left += range.n_left;
  last->n_right += range.n_right;
}

static void add_matrix(struct program *program, const struct factored *matrix) {
  struct compression *compression = &program->ranks.compression;
  ARENA_PUSH(program->arena, *compression, *matrix);
  add_range(program, &compression->factors,
            (struct sent_range){.what = matrix->what,
                                .stage = matrix->stage,
                                .first = matrix->at,
                                .count = aligned(matrix->rows * matrix->columns),
                                .left = matrix->left,
                                .n_left = aligned(matrix->rows * matrix->rank),
                                .right = matrix->right,
                                .n_right = aligned(matrix->columns * matrix->rank)});
}

/* ---- By parameter ---- */

/* Whether its factors are so much smaller: fills the matrix, which has a rank of 0 otherwise. */
static bool matrix_of(const struct program *program, const struct weight *weight, struct factored *matrix) {
  const struct shape shape = weight->parameter->shape;
  int64_t count = shape_count(shape), rows = shape.rank > 0 ? shape.dim[0] : 1, columns = count / rows;
  int64_t rank = smaller(program->job->parallelism.power_sgd.rank, smaller(rows, columns));
  *matrix = (struct factored){0};
  double rate = program->job->parallelism.power_sgd.least_rate;
  if (!program->job->parallelism.power_sgd.on) return false;
  if ((double)((rows + columns) * rank) * rate >= (double)count) return false;
  *matrix = (struct factored){.what = weight->path,
                              .weight = weight,
                              .first = weight->gradient / dtype_size(DTYPE_FLOAT32),
                              .count = count,
                              .rows = rows,
                              .columns = columns,
                              .rank = rank};
  return true;
}

/* Whether a rank of a pipeline has the gradient; without one all have it. */
static bool has(const struct program *program, int rank, const struct weight *weight) {
  return weight->gradient >= 0 &&
         (program->ranks.pipeline.stages == 0 || rank_uses(&program->ranks.pipeline, rank, weight->path));
}

/* What each rank of a pipeline, or every one, sends as factors, and what as it is. */
static void add_parameters(struct program *program) {
  const struct weight_tree *weights = program->weights;
  struct factored *matrices = arena_alloc(program->arena, ((size_t)weights->count + 1) * sizeof *matrices);
  const int ranks = program->ranks.pipeline.stages > 0 ? program->ranks.pipeline.ranks : 1;
  for (int i = 0; i < weights->count; i++)
    if (weights->items[i].gradient >= 0 && matrix_of(program, &weights->items[i], &matrices[i]))
      place_matrix(program, &matrices[i]);
  for (int rank = 0; rank < ranks; rank++)
    for (int i = 0; i < weights->count; i++) {
      const struct weight *weight = &weights->items[i];
      struct factored matrix = matrices[i];
      if (!has(program, rank, weight)) continue;
      matrix.stage = rank;
      if (matrix.rank > 0) {
        add_matrix(program, &matrix);
        continue;
      }
      const int64_t count = aligned(shape_count(weight->parameter->shape));
      add_range(program, &program->ranks.compression.whole,
                (struct sent_range){.what = weight->path,
                                    .stage = rank,
                                    .first = weight->gradient / dtype_size(DTYPE_FLOAT32),
                                    .count = count});
    }
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
    struct factored square = {
        .what = what, .first = first, .count = count, .rows = side, .columns = side, .rank = rank};
    place_matrix(program, &square);
    add_matrix(program, &square);
  }
}

/* ---- Collectives ---- */

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

/* What is on its way at once: the gradients that are sent whole, or the factors of one side. */
static int64_t wire_elements(const struct program *program) {
  const struct compression *compression = &program->ranks.compression;
  bool whole = program->job->parallelism.power_sgd.start > 0 || compression->whole.count > 0;
  int64_t elements = whole ? compression->gradients : 0;
  if (elements < compression->left) elements = compression->left;
  return elements < compression->right ? compression->right : elements;
}

/* The gradients of the first steps, all whole: of a rank of a pipeline, those of its stages. */
static void add_first_steps(struct program *program, int rank) {
  const int64_t start = program->job->parallelism.power_sgd.start;
  const bool staged = program->ranks.pipeline.stages > 0;
  const int n = program->ranks.collectives.count;
  if (start == 0) return;
  add(program, staged ? "gradients of its stages" : "gradients of all parameters", 0,
      staged ? stage_summed_elements(program, rank, AXES) : program->ranks.compression.gradients);
  for (int i = n; i < program->ranks.collectives.count; i++) {
    program->ranks.collectives.items[i].until = start;
    program->ranks.collectives.items[i].from = 0;
  }
}

void add_compressed(struct program *program, int rank) {
  const struct compression *compression = &program->ranks.compression;
  add_first_steps(program, rank);
  for (int i = 0; i < compression->whole.count; i++) {
    const struct sent_range *range = &compression->whole.items[i];
    const char *more = range->more > 0 ? arena_printf(program->arena, " and %d more", range->more) : "";
    if (range->stage == rank)
      add(program, arena_printf(program->arena, "gradients of %s%s", range->what, more), range->first, range->count);
  }
  for (int i = 0; i < compression->factors.count; i++)
    if (compression->factors.items[i].stage == rank)
      add(program, "left factors of gradients", compression->factors.items[i].left,
          compression->factors.items[i].n_left);
  for (int i = 0; i < compression->factors.count; i++)
    if (compression->factors.items[i].stage == rank)
      add(program, "right factors of gradients", compression->factors.items[i].right,
          compression->factors.items[i].n_right);
}

void plan_stage_compression(struct program *program) {
  struct compression *compression = &program->ranks.compression;
  if (!program->job->parallelism.power_sgd.on || program->kind != PROGRAM_TRAIN) return;
  compression->gradients = all_gradients(program);
  add_parameters(program);
  if (program->job->parallelism.wire != PRECISION_NO) program->ranks.wire = wire_elements(program);
}

void plan_compression(struct program *program) {
  struct compression *compression = &program->ranks.compression;
  if (program->entry.backward == NULL) return;
  compression->gradients = all_gradients(program);
  if (program->job->parallelism.power_sgd.batched)
    add_squares(program);
  else
    add_parameters(program);
  add_compressed(program, 0);
  if (program->job->parallelism.wire != PRECISION_NO) program->ranks.wire = wire_elements(program);
  bool counts = program->step_end.counts;
  add(program, counts ? "the loss, and what it is a mean over" : "the loss", 0, counts ? 2 : 1);
  struct collective *loss = &program->ranks.collectives.items[program->ranks.collectives.count - 1];
  loss->width = (int64_t)sizeof(double);
  loss->from = 0;
  add_scales(program);
  sequence_collectives(program);
  program->ranks.sends_always = true; /* gradients are sent after the backward */
}

int64_t compression_bytes(const struct program *program) {
  const struct compression *compression = &program->ranks.compression;
  const bool squares = program->job->parallelism.power_sgd.batched;
  /* Right factors that are drawn for each step come with a device's samples: of stages with those of each slot. */
  const bool drawn = !program->job->parallelism.power_sgd.warm;
  const int64_t slots =
      program->target->memory.separate && program->ranks.pipeline.stages > 0 ? program->ranks.pipeline.max_slots : 0;
  int64_t elements = compression->left + (squares ? compression->elements : 0);
  if (drawn) elements += (1 + slots) * compression->right;
  return elements * dtype_size(DTYPE_FLOAT32);
}

int64_t stage_factors(const struct program *program, int rank) {
  const struct sent_range_list *list = &program->ranks.compression.factors;
  int64_t elements = 0;
  for (int i = 0; i < list->count; i++)
    if (list->items[i].stage == rank) elements += list->items[i].n_left + list->items[i].n_right;
  return elements;
}

/* ---- What outlives a step ---- */

/* slice_of: by the position of a weight, one more than that of its slice; NULL: slices are of no weights. */
static void add_state(struct program *program, const char *name, const char *member, int64_t count,
                      struct state_slice *slices, int n_slices, int *slice_of) {
  struct state state = {.file = "progress",
                        .name = name,
                        .member = member,
                        .dtype = DTYPE_FLOAT32,
                        .count = count,
                        .slices = slices,
                        .n_slices = n_slices,
                        .slice_of = slice_of};
  if (count > 0) ARENA_PUSH(program->arena, program->states, state);
}

/* Of no parameter. */
static void add_numbers(struct program *program, const char *name, const char *member, int64_t count) {
  struct state_slice *slice = arena_alloc(program->arena, sizeof *slice);
  slice->shape = shape_of(1, count);
  add_state(program, name, member, count, slice, 1, NULL);
}

/* Of each matrix the right factor, or all that it has. */
static void add_of_matrices(struct program *program, const char *name, const char *member, bool factors) {
  const struct compression *compression = &program->ranks.compression;
  const int64_t count = factors ? compression->right : compression->elements;
  struct state_slice *slices = arena_alloc(program->arena, ((size_t)compression->count + 1) * sizeof *slices);
  int *slice_of = arena_alloc(program->arena, ((size_t)program->weights->count + 1) * sizeof *slice_of), n = 0;
  if (program->job->parallelism.power_sgd.batched) {
    add_numbers(program, name, member, count);
    return;
  }
  for (int i = 0; i < compression->count; i++) {
    const struct factored *matrix = &compression->items[i];
    int *position = &slice_of[matrix->weight - program->weights->items];
    if (*position > 0) continue; /* an earlier stage has it, too */
    const struct shape factor = shape_of(2, matrix->columns, matrix->rank);
    slices[n++] = (struct state_slice){matrix->weight, factors ? matrix->right : matrix->at,
                                       factors ? factor : matrix->weight->parameter->shape};
    *position = n;
  }
  add_state(program, name, member, count, slices, n, slice_of);
}

void compression_states(struct program *program) {
  const struct compression *compression = &program->ranks.compression;
  if (program->job->parallelism.by_hook) add_numbers(program, "bucket_state", "bucket_state", compression->elements);
  if (program->job->parallelism.power_sgd.warm) add_of_matrices(program, "power_sgd_q", "right_factors", true);
  if (program->job->parallelism.power_sgd.feedback) add_of_matrices(program, "power_sgd_error", "missed", false);
}
