/* The scales that follow a batch (backend: te of precision.fp8). */
#include <math.h>
#include <string.h>

#include "gen/emit/rows.h"
#include "gen/emit/values.h"
#include "gen/program/fp8.h"

enum { E4M3_MOST = 448, E5M2_MOST = 57344 };

static bool is_gradient(const char *path) {
  const size_t length = strlen(path), ending = strlen(fp8_gradient);
  return length > ending && strcmp(path + length - ending, fp8_gradient) == 0;
}

/* By scale: where it is among the weights, where its sizes are, the largest number of the tensor's format; where layers
 * are divided, the rank that has it, and whether the tensor is a gradient. */
static struct jinja_value rows_value(const struct program *program, int64_t count) {
  struct table_row *rows = arena_alloc(program->arena, (size_t)count * sizeof *rows);
  const int64_t size = dtype_size(DTYPE_FLOAT32);
  const bool hybrid = program->job->precision.fp8.format == FP8_HYBRID;
  int n = 0;
  const bool staged = program->ranks.pipeline.stages > 0;
  for (int i = 0; i < program->weights->count; i++) {
    const struct weight *scale = &program->weights->items[i], *history = fp8_history(program, scale);
    if (history == NULL) continue;
    rows[n++] = (struct table_row){.name = scale->path,
                                   .same = {hybrid && is_gradient(scale->path) ? E5M2_MOST : E4M3_MOST,
                                            fp8_rank_of(program, scale), is_gradient(scale->path)},
                                   .steps = {scale->offset / size, history->offset / size}};
  }
  return table_value(program->arena, rows, n, 2, staged ? 3 : 1);
}

/* By weight: where it is among the weights, and its gradient and moments among all of these; how many numbers. */
static struct jinja_value weights_value(const struct program *program, bool layers) {
  struct table_row *rows = arena_alloc(program->arena, (size_t)program->weights->count * sizeof *rows);
  const int64_t size = dtype_size(DTYPE_FLOAT32);
  int n = 0;
  for (int i = 0; i < program->weights->count; i++) {
    const struct weight *weight = &program->weights->items[i];
    if (weight->gradient < 0 || (layers && !fp8_rounds_weight(program, weight))) continue;
    rows[n++] = (struct table_row){.name = weight->path,
                                   .same = {shape_count(weight->parameter->shape)},
                                   .steps = {weight->offset / size, weight->gradient / size}};
  }
  return table_value(program->arena, rows, n, 2, 1);
}

/* What backend: msamp rounds when a backward, and a step, is over. */
static struct jinja_value msamp_value(const struct program *program) {
  struct jinja_value value = jinja_map(program->arena);
  if (program->job->precision.fp8.backend != FP8_MSAMP) return value;
  jinja_set(program->arena, value, "layers", weights_value(program, true));
  const bool moments = program->job->precision.fp8.opt_level == FP8_O2;
  jinja_set(program->arena, value, "moments", moments ? weights_value(program, false) : jinja_none());
  set_real(program->arena, value, "before_sum", 1 / sqrt((double)job_data_ranks(program->job)));
  return value;
}

struct jinja_value scaling_value(const struct program *program) {
  const int64_t count = fp8_scales(program);
  if (count == 0) return jinja_none();
  struct jinja_value value = jinja_map(program->arena);
  set_int(program->arena, value, "count", count);
  set_int(program->arena, value, "length", fp8_history_length(program->job));
  set_int(program->arena, value, "margin", program->job->precision.fp8.margin);
  set_bool(program->arena, value, "of_all", program->job->precision.fp8.amax_compute_algo == AMAX_MAX);
  jinja_set(program->arena, value, "msamp", msamp_value(program));
  jinja_set(program->arena, value, "axes", axis_names_value(program->arena, fp8_axes(program)));
  jinja_set(program->arena, value, "rows", rows_value(program, count));
  return value;
}
