/* Gradients that travel as factors of matrices. */
#include <inttypes.h>

#include "gen/emit/rows.h"
#include "gen/emit/values.h"
#include "gen/program/storage.h"

/* " + 786432 + i * 7087872": where something begins that lies `step` further in each layer; "": at the beginning. */
static const char *offset_text(struct arena *arena, int64_t first, int64_t step) {
  const char *base = first > 0 ? arena_printf(arena, " + %" PRId64, first) : "";
  if (step == 0) return base;
  return arena_printf(arena, "%s %s i * %" PRId64, base, step > 0 ? "+" : "-", step > 0 ? step : -step);
}

/* A matrix, and that of the next layer: itself where it is the only one. */
static struct jinja_value matrix_value(struct arena *arena, const struct factored *matrix, const struct factored *next,
                                       const char *what) {
  struct jinja_value value = jinja_map(arena);
  set_comment(arena, value, "what", what);
  set_int(arena, value, "count", matrix->count);
  set_int(arena, value, "rows", matrix->rows);
  set_int(arena, value, "columns", matrix->columns);
  set_int(arena, value, "rank", matrix->rank);
  set_int(arena, value, "elements", matrix->rows * matrix->columns);
  set_text(arena, value, "first", offset_text(arena, matrix->first, next->first - matrix->first));
  set_text(arena, value, "at", offset_text(arena, matrix->at, next->at - matrix->at));
  set_text(arena, value, "end", offset_text(arena, matrix->at + matrix->count, next->at - matrix->at));
  set_text(arena, value, "left", offset_text(arena, matrix->left, next->left - matrix->left));
  set_text(arena, value, "right", offset_text(arena, matrix->right, next->right - matrix->right));
  enum { MOST_AT_ONCE = 64 };
  int64_t block = matrix->columns < MOST_AT_ONCE ? matrix->columns : MOST_AT_ONCE;
  while (matrix->columns % block != 0) block--;
  set_int(arena, value, "block", block);
  return value;
}

/* Matrices that follow each other, of as many layers: {count, matrices}. */
static struct jinja_value group_value(struct arena *arena, const struct factored *items, const struct table_row *rows,
                                      struct repeat repeat) {
  struct jinja_value value = jinja_map(arena), list = jinja_list(arena);
  for (int i = repeat.first; i < repeat.first + repeat.rows; i++) {
    const struct factored *next = &items[repeat.count > 1 ? i + repeat.rows : i];
    jinja_push(arena, list, matrix_value(arena, &items[i], next, rows[i].name));
  }
  set_int(arena, value, "count", repeat.count);
  jinja_set(arena, value, "matrices", list);
  return value;
}

static struct table_row *table_of(struct arena *arena, const struct compression *compression) {
  struct table_row *rows = arena_alloc(arena, ((size_t)compression->count + 1) * sizeof *rows);
  for (int i = 0; i < compression->count; i++) {
    const struct factored *m = &compression->items[i];
    rows[i] = (struct table_row){.name = m->what,
                                 .same = {m->count, m->rows, m->columns, m->rank},
                                 .steps = {m->first, m->at, m->left, m->right}};
  }
  return rows;
}

/* All matrices, those of layers that are alike once. */
static struct jinja_value groups_value(struct arena *arena, const struct compression *compression) {
  struct jinja_value list = jinja_list(arena);
  struct table_row *rows = table_of(arena, compression);
  struct repeat_list repeats = find_repeats(arena, rows, compression->count);
  int done = 0;
  for (int i = 0; i <= repeats.count; i++) {
    int first = i < repeats.count ? repeats.items[i].first : compression->count;
    struct repeat before = {done, first - done, 1};
    if (before.rows > 0) jinja_push(arena, list, group_value(arena, compression->items, rows, before));
    if (i == repeats.count) break;
    jinja_push(arena, list, group_value(arena, compression->items, rows, repeats.items[i]));
    done = first + repeats.items[i].rows * repeats.items[i].count;
  }
  return list;
}

/* The first ones of each shape. */
static struct jinja_value shapes_value(struct arena *arena, const struct compression *compression) {
  struct jinja_value list = jinja_list(arena);
  for (int i = 0; i < compression->count; i++) {
    const struct factored *matrix = &compression->items[i];
    bool known = false;
    for (int k = 0; k < i; k++)
      known |= compression->items[k].rows == matrix->rows && compression->items[k].columns == matrix->columns;
    if (!known) jinja_push(arena, list, matrix_value(arena, matrix, matrix, matrix->what));
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
  struct jinja_value value = jinja_map(arena);
  if (compression->gradients == 0) return value;
  struct table_row *rows = arena_alloc(arena, ((size_t)compression->n_buckets + 1) * sizeof *rows);
  for (int i = 0; i < compression->n_buckets; i++) {
    const struct collective *whole = &program->ranks.collectives.items[compression->first_bucket + i];
    rows[i] = (struct table_row){.name = whole->what, .same = {whole->count}, .steps = {whole->first}};
  }
  jinja_set(arena, value, "buckets", table_value(arena, rows, compression->n_buckets, 1, 1));
  jinja_set(arena, value, "matrices", table_value(arena, table_of(arena, compression), compression->count, 4, 4));
  jinja_set(arena, value, "groups", groups_value(arena, compression));
  jinja_set(arena, value, "shapes", shapes_value(arena, compression));
  jinja_set(arena, value, "factors", factors_value(arena, compression));
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
