/* Gradients that travel as factors of matrices. */
#include "gen/emit/values.h"
#include "gen/program/storage.h"

static struct jinja_value matrix_value(struct arena *arena, const struct factored *matrix) {
  struct jinja_value value = jinja_map(arena);
  set_comment(arena, value, "what", matrix->what);
  set_int(arena, value, "first", matrix->first);
  set_int(arena, value, "count", matrix->count);
  set_int(arena, value, "rows", matrix->rows);
  set_int(arena, value, "columns", matrix->columns);
  set_int(arena, value, "rank", matrix->rank);
  set_int(arena, value, "elements", matrix->rows * matrix->columns);
  set_int(arena, value, "at", matrix->at);
  set_int(arena, value, "left", matrix->left);
  set_int(arena, value, "right", matrix->right);
  enum { MOST_AT_ONCE = 64 };
  int64_t block = matrix->columns < MOST_AT_ONCE ? matrix->columns : MOST_AT_ONCE;
  while (matrix->columns % block != 0) block--;
  set_int(arena, value, "block", block);
  return value;
}

/* The first ones of each shape. */
static struct jinja_value shapes_value(struct arena *arena, const struct compression *compression) {
  struct jinja_value list = jinja_list(arena);
  for (int i = 0; i < compression->count; i++) {
    const struct factored *matrix = &compression->items[i];
    bool known = false;
    for (int k = 0; k < i; k++)
      known |= compression->items[k].rows == matrix->rows && compression->items[k].columns == matrix->columns;
    if (!known) jinja_push(arena, list, matrix_value(arena, matrix));
  }
  return list;
}

/* Factors of each length and width once: {rows, rank}. */
static struct jinja_value factors_value(struct arena *arena, const struct compression *compression) {
  struct jinja_value list = jinja_list(arena);
  for (int i = 0; i < 2 * compression->count; i++) {
    const struct factored *matrix = &compression->items[i / 2];
    int64_t rows = i % 2 == 0 ? matrix->rows : matrix->columns;
    bool known = false;
    for (int k = 0; k < i; k++) {
      const struct factored *other = &compression->items[k / 2];
      known |= (k % 2 == 0 ? other->rows : other->columns) == rows && other->rank == matrix->rank;
    }
    if (known) continue;
    struct jinja_value value = jinja_map(arena);
    set_int(arena, value, "rows", rows);
    set_int(arena, value, "rank", matrix->rank);
    jinja_push(arena, list, value);
  }
  return list;
}

/* What lies between gradients, which a square gives numbers too: [{first, count}]. */
static struct jinja_value gaps_value(const struct program *program) {
  struct arena *arena = program->arena;
  struct jinja_value list = jinja_list(arena);
  int64_t size = dtype_size(DTYPE_FLOAT32);
  for (int i = 0; i < program->weights->count && program->ranks.compression.count > 0; i++) {
    const struct weight *weight = &program->weights->items[i];
    int64_t count = shape_count(weight->parameter->shape), gap = arena_aligned(count * size) / size - count;
    if (weight->gradient < 0 || gap == 0) continue;
    struct jinja_value value = jinja_map(arena);
    set_int(arena, value, "first", weight->gradient / size + count);
    set_int(arena, value, "count", gap);
    jinja_push(arena, list, value);
  }
  return list;
}

struct jinja_value compression_value(const struct program *program) {
  struct arena *arena = program->arena;
  const struct compression *compression = &program->ranks.compression;
  const struct job *job = program->job;
  struct jinja_value value = jinja_map(arena), matrices = jinja_list(arena), buckets = jinja_list(arena);
  if (compression->gradients == 0) return value;
  for (int i = 0; i < compression->count; i++) jinja_push(arena, matrices, matrix_value(arena, &compression->items[i]));
  for (int i = 0; i < compression->n_buckets; i++) {
    const struct collective *whole = &program->ranks.collectives.items[compression->first_bucket + i];
    struct jinja_value bucket = jinja_map(arena);
    set_comment(arena, bucket, "what", whole->what);
    set_int(arena, bucket, "first", whole->first);
    set_int(arena, bucket, "count", whole->count);
    jinja_push(arena, buckets, bucket);
  }
  jinja_set(arena, value, "matrices", matrices);
  jinja_set(arena, value, "shapes", shapes_value(arena, compression));
  jinja_set(arena, value, "factors", factors_value(arena, compression));
  jinja_set(arena, value, "buckets", buckets);
  jinja_set(arena, value, "gaps", gaps_value(program));
  set_int(arena, value, "elements", compression->elements);
  set_int(arena, value, "left", compression->left);
  set_int(arena, value, "right", compression->right);
  set_int(arena, value, "gradients", compression->gradients);
  set_int(arena, value, "start", job->parallelism.power_sgd.start);
  set_int(arena, value, "seed", job->parallelism.power_sgd.seed);
  set_real(arena, value, "epsilon", job->parallelism.power_sgd.epsilon);
  set_bool(arena, value, "batched", job->parallelism.power_sgd.batched);
  set_bool(arena, value, "feedback", job->parallelism.power_sgd.feedback);
  set_bool(arena, value, "warm", job->parallelism.power_sgd.warm);
  return value;
}
