/* The scales that follow a batch (backend: te of precision.fp8). */
#include <string.h>

#include "gen/emit/rows.h"
#include "gen/emit/values.h"
#include "gen/program/fp8.h"

enum { E4M3_MOST = 448, E5M2_MOST = 57344 };

static bool is_gradient(const char *path) {
  const size_t length = strlen(path), ending = strlen(fp8_gradient);
  return length > ending && strcmp(path + length - ending, fp8_gradient) == 0;
}

/* By scale: where it is among the weights, where its sizes are, the largest number of the tensor's format. */
static struct jinja_value rows_value(const struct program *program, int64_t count) {
  struct table_row *rows = arena_alloc(program->arena, (size_t)count * sizeof *rows);
  const int64_t size = dtype_size(DTYPE_FLOAT32);
  const bool hybrid = program->job->precision.fp8.format == FP8_HYBRID;
  int n = 0;
  for (int i = 0; i < program->weights->count; i++) {
    const struct weight *scale = &program->weights->items[i], *history = fp8_history(program, scale);
    if (history == NULL) continue;
    rows[n++] = (struct table_row){.name = scale->path,
                                   .same = {hybrid && is_gradient(scale->path) ? E5M2_MOST : E4M3_MOST},
                                   .steps = {scale->offset / size, history->offset / size}};
  }
  return table_value(program->arena, rows, n, 2, 1);
}

struct jinja_value scaling_value(const struct program *program) {
  const int64_t count = fp8_scales(program);
  if (count == 0) return jinja_none();
  struct jinja_value value = jinja_map(program->arena);
  set_int(program->arena, value, "count", count);
  set_int(program->arena, value, "length", program->job->precision.fp8.amax_history_len);
  set_int(program->arena, value, "margin", program->job->precision.fp8.margin);
  set_bool(program->arena, value, "of_all", program->job->precision.fp8.amax_compute_algo == AMAX_MAX);
  jinja_set(program->arena, value, "axes", axis_names_value(program->arena, fp8_axes(program)));
  jinja_set(program->arena, value, "rows", rows_value(program, count));
  return value;
}
