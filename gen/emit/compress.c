/* Gradients that are sent as factors of matrices, or by user code. */
#include "gen/emit/rows.h"
#include "gen/emit/values.h"
#include "gen/program/storage.h"

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

/* The largest of what they have, {elements, rows, columns, rank}: the extents of loops over all of them. */
static struct jinja_value most_value(struct arena *arena, const struct compression *compression) {
  struct jinja_value value = jinja_map(arena);
  int64_t elements = 1, rows = 1, columns = 1, rank = 1;
  for (int i = 0; i < compression->count; i++) {
    const struct factored *m = &compression->items[i];
    if (m->rows * m->columns > elements) elements = m->rows * m->columns;
    if (m->rows > rows) rows = m->rows;
    if (m->columns > columns) columns = m->columns;
    if (m->rank > rank) rank = m->rank;
  }
  set_int(arena, value, "elements", elements);
  set_int(arena, value, "rows", rows);
  set_int(arena, value, "columns", columns);
  set_int(arena, value, "rank", rank);
  return value;
}

/* The columns of all factors; 0: they differ. */
static int64_t common_rank(const struct compression *compression) {
  for (int i = 1; i < compression->count; i++)
    if (compression->items[i].rank != compression->items[0].rank) return 0;
  return compression->count > 0 ? compression->items[0].rank : 0;
}

/* What is between gradients, which a square gives numbers too: a table of {first, count}. */
static struct jinja_value gaps_value(const struct program *program) {
  struct arena *arena = program->arena;
  struct table_row *rows = arena_alloc(arena, ((size_t)program->weights->count + 1) * sizeof *rows);
  int64_t size = dtype_size(DTYPE_FLOAT32);
  int n = 0;
  for (int i = 0; i < program->weights->count && program->ranks.compression.count > 0; i++) {
    const struct weight *weight = &program->weights->items[i];
    int64_t count = shape_count(weight->parameter->shape), gap = arena_aligned(count * size) / size - count;
    if (weight->gradient < 0 || gap == 0) continue;
    rows[n++] = (struct table_row){.name = weight->path, .same = {gap}, .steps = {weight->gradient / size + count}};
  }
  return table_value(arena, rows, n, 1, 1);
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
  jinja_set(arena, value, "most", most_value(arena, compression));
  set_int(arena, value, "rank", common_rank(compression));
  jinja_set(arena, value, "gaps", gaps_value(program));
  set_int(arena, value, "elements", compression->elements);
  set_int(arena, value, "left", compression->left);
  set_int(arena, value, "right", compression->right);
  set_int(arena, value, "gradients", compression->gradients);
  set_int(arena, value, "start", job->parallelism.power_sgd.start);
  set_int(arena, value, "seed", job->parallelism.power_sgd.seed);
  set_real(arena, value, "epsilon", job->parallelism.power_sgd.epsilon);
  set_bool(arena, value, "batched", job->parallelism.power_sgd.batched);
  set_bool(arena, value, "by_hook", job->parallelism.by_hook);
  set_text(arena, value, "missed", job->parallelism.by_hook ? "bucket_state" : "missed");
  set_bool(arena, value, "feedback", job->parallelism.power_sgd.feedback || job->parallelism.by_hook);
  set_bool(arena, value, "warm", job->parallelism.power_sgd.warm);
  return value;
}
