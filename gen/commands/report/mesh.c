/* The mesh of a plan's page: tables of ranks. */
#include "gen/base/text.h"
#include "gen/commands/report/plan_page.h"
#include "gen/plan/report/grid.h"

enum { MOST_SHOWN = 1024 };

/* "dp_shard 2"; "dp_shard 2-3" where a place along a dimension has several numbers. */
static const char *place_text(struct arena *arena, const struct grid_dim *dim, int64_t place) {
  const long long first = (long long)(place * dim->together), last = first + (long long)dim->together - 1;
  return first == last ? arena_printf(arena, "%s %lld", job_axis_names[dim->axis], first)
                       : arena_printf(arena, "%s %lld-%lld", job_axis_names[dim->axis], first, last);
}

/* Ranks from one place to the next one along a dimension. */
static int64_t stride_of(const struct grid *grid, int dim) {
  int64_t stride = 1;
  for (int i = dim + 1; i < grid->n_dims; i++) stride *= grid->dims[i].length;
  return stride;
}

/* The places of a rank along the dimensions from one up to another: "dp_replicate 0, dp_shard 1". */
static const char *places_text(struct arena *arena, const struct grid *grid, int first, int end, int64_t rank) {
  struct text out = text_in(arena);
  for (int i = first; i < end; i++) {
    const int64_t place = rank / stride_of(grid, i) % grid->dims[i].length;
    text_printf(&out, "%s%s", i > first ? ", " : "", place_text(arena, &grid->dims[i], place));
  }
  return text_string(&out);
}

/* What the dimension `dim` of the grid has for rows or columns; one without a name where there is none. */
static int64_t length_of(const struct grid *grid, int dim) {
  return dim >= 0 ? grid->dims[dim].length : 1;
}

static struct jinja_value rank_value(struct arena *arena, const struct program *program, int64_t rank) {
  struct jinja_value value = jinja_map(arena);
  const int64_t machine = rank / (program->job->devices.ranks / program->job->devices.nodes);
  struct text where = text_in(arena);
  for (int axis = 0; axis < AXES; axis++)
    if (ranks_along(program, (enum axis)axis) > 1)
      text_printf(&where, "%s%s %lld", where.length > 0 ? ", " : "", job_axis_names[axis],
                  (long long)grid_along(program, rank, (enum axis)axis));
  jinja_set(arena, value, "rank", jinja_int(rank));
  jinja_set(arena, value, "where", jinja_string(arena, text_string(&where)));
  jinja_set(arena, value, "machine", jinja_int(machine));
  return value;
}

/* The ranks from `first` on whose places differ along the last two dimensions alone. */
static struct jinja_value table_of(struct arena *arena, const struct program *program, const struct grid *grid,
                                   int64_t first) {
  struct jinja_value table = jinja_map(arena), columns = jinja_list(arena), rows = jinja_list(arena);
  const int across = grid->n_dims - 1, down = grid->n_dims - 2;
  for (int64_t c = 0; c < length_of(grid, across); c++)
    jinja_push(arena, columns, jinja_string(arena, place_text(arena, &grid->dims[across], c)));
  for (int64_t r = 0; r < length_of(grid, down); r++) {
    struct jinja_value row = jinja_map(arena), ranks = jinja_list(arena);
    for (int64_t c = 0; c < length_of(grid, across); c++)
      jinja_push(arena, ranks, rank_value(arena, program, first + r * length_of(grid, across) + c));
    jinja_set(arena, row, "name", jinja_string(arena, down >= 0 ? place_text(arena, &grid->dims[down], r) : "rank"));
    jinja_set(arena, row, "ranks", ranks);
    jinja_push(arena, rows, row);
  }
  jinja_set(arena, table, "name", jinja_string(arena, down > 0 ? places_text(arena, grid, 0, down, first) : ""));
  jinja_set(arena, table, "columns", columns);
  jinja_set(arena, table, "rows", rows);
  return table;
}

void page_add_mesh(struct arena *arena, struct jinja_value page, const struct program *program) {
  const struct grid grid = grid_of(program);
  struct jinja_value mesh = jinja_map(arena), tables = jinja_list(arena);
  jinja_set(arena, page, "mesh", jinja_none());
  if (grid.n_dims == 0) return;
  const int64_t each = length_of(&grid, grid.n_dims - 1) * length_of(&grid, grid.n_dims - 2);
  int64_t shown = 0;
  for (; shown < grid.ranks && shown + each <= MOST_SHOWN; shown += each)
    jinja_push(arena, tables, table_of(arena, program, &grid, shown));
  jinja_set(arena, mesh, "ranks", jinja_int(grid.ranks));
  jinja_set(arena, mesh, "machines", jinja_int(program->job->devices.nodes));
  jinja_set(arena, mesh, "left_out", jinja_int(grid.ranks - shown));
  jinja_set(arena, mesh, "tables", tables);
  jinja_set(arena, page, "mesh", mesh);
}
