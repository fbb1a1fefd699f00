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

/* What is sent whole: the first gradient, how many. */
static struct jinja_value whole_value(struct arena *arena, const struct sent_range_list *list) {
  struct table_row *rows = arena_alloc(arena, ((size_t)list->count + 1) * sizeof *rows);
  for (int i = 0; i < list->count; i++)
    rows[i] = (struct table_row){
        .name = list->items[i].what, .same = {list->items[i].count}, .steps = {list->items[i].first}};
  return table_value(arena, rows, list->count, 1, 1);
}

/* Neighbours among matrices: where they and their factors begin, how many elements these have. */
static struct jinja_value factors_value(struct arena *arena, const struct sent_range_list *list) {
  struct table_row *rows = arena_alloc(arena, ((size_t)list->count + 1) * sizeof *rows);
  for (int i = 0; i < list->count; i++) {
    const struct sent_range *range = &list->items[i];
    rows[i] = (struct table_row){.name = range->what,
                                 .same = {range->count, range->n_left, range->n_right},
                                 .steps = {range->first, range->left, range->right}};
  }
  return table_value(arena, rows, list->count, 3, 3);
}

/* Where the rows of each rank of a pipeline begin in the tables of that name, and the end. */
static void set_firsts(const struct program *program, struct jinja_value value) {
  struct arena *arena = program->arena;
  const struct compression *compression = &program->ranks.compression;
  struct jinja_value matrices = jinja_list(arena), whole = jinja_list(arena), factors = jinja_list(arena);
  int m = 0, w = 0, f = 0;
  for (int k = 0; k <= program->ranks.pipeline.ranks; k++) {
    while (m < compression->count && compression->items[m].stage < k) m++;
    while (w < compression->whole.count && compression->whole.items[w].stage < k) w++;
    while (f < compression->factors.count && compression->factors.items[f].stage < k) f++;
    jinja_push(arena, matrices, jinja_int(m));
    jinja_push(arena, whole, jinja_int(w));
    jinja_push(arena, factors, jinja_int(f));
  }
  jinja_set(arena, value, "first_matrices", matrices);
  jinja_set(arena, value, "first_buckets", whole);
  jinja_set(arena, value, "first_factors", factors);
}

struct jinja_value compression_value(const struct program *program) {
  struct arena *arena = program->arena;
  const struct compression *compression = &program->ranks.compression;
  const struct job *job = program->job;
  struct jinja_value value = jinja_map(arena);
  if (compression->gradients == 0) return value;
  jinja_set(arena, value, "buckets", whole_value(arena, &compression->whole));
  jinja_set(arena, value, "factors", factors_value(arena, &compression->factors));
  if (program->ranks.pipeline.stages > 0) set_firsts(program, value);
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
