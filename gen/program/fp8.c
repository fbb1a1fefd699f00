#include "gen/program/fp8.h"

#include <string.h>

#include "gen/base/path.h"
#include "gen/base/text.h"
#include "gen/program/stage_parameters.h"
#include "gen/program/target.h"
#include "gen/program/weights.h"

const char fp8_scale_beginning[] = "fp8_scale_";
const char fp8_history_beginning[] = "fp8_amax_history_";
const char fp8_gradient[] = "grad_output";

static const char *last_name(const char *path) {
  const char *dot = strrchr(path, '.');
  return dot != NULL ? dot + 1 : path;
}

bool is_fp8_state(const char *name) {
  const char *last = last_name(name);
  return text_begins(last, fp8_scale_beginning) || text_begins(last, fp8_history_beginning);
}

const struct weight *fp8_history(const struct program *program, const struct weight *scale) {
  const char *last = last_name(scale->path);
  if (!scale->parameter->buffer || !text_begins(last, fp8_scale_beginning)) return NULL;
  const char *path = arena_printf(program->arena, "%.*s%s%s", (int)(last - scale->path), scale->path,
                                  fp8_history_beginning, last + strlen(fp8_scale_beginning));
  return weight_named(program->weights, path);
}

bool fp8_has_codes(const struct program *program) {
  const bool tensors = program->job->precision.fp8.recipe == FP8_TENSORWISE;
  return tensors && program->target->library.multiplies_fp8 && !program->job->precision.fp8.emulate;
}

struct axes fp8_axes(const struct program *program) {
  struct axes axes = program->mesh.batches;
  const enum axis tensors = axis_sharding(program, SHARDED_TENSORS);
  if (tensors != AXES && !axes_have(axes, tensors)) axes.items[axes.count++] = tensors;
  return axes;
}

int fp8_rank_of(const struct program *program, const struct weight *scale) {
  const struct pipeline *pipeline = &program->ranks.pipeline;
  for (int rank = 1; pipeline->stages > 0 && rank < pipeline->ranks; rank++)
    if (rank_uses(pipeline, rank, scale->path)) return rank;
  return 0;
}

enum { MSAMP_WINDOW = 16 }; /* FP8Linear.DEFAULT_WINDOW_SIZE of MS-AMP */

int64_t fp8_history_length(const struct job *job) {
  return job->precision.fp8.backend == FP8_MSAMP ? MSAMP_WINDOW : job->precision.fp8.amax_history_len;
}

bool fp8_rounds_weight(const struct program *program, const struct weight *weight) {
  const struct job *job = program->job;
  if (!job->precision.fp8.on || job->precision.fp8.backend != FP8_MSAMP || weight->gradient < 0) return false;
  const char *module = without_ending(program->arena, weight->path, ".weight");
  return module != NULL && weight_named(program->weights, arena_printf(program->arena, "%s.%sinput", module,
                                                                       fp8_scale_beginning)) != NULL;
}

int64_t fp8_rounded_weights(const struct program *program) {
  int64_t count = 0;
  for (int i = 0; i < program->weights->count && program->kind == PROGRAM_TRAIN; i++)
    count += fp8_rounds_weight(program, &program->weights->items[i]);
  return count;
}

int64_t fp8_scales(const struct program *program) {
  int64_t count = 0;
  if (!program->job->precision.fp8.on || program->kind != PROGRAM_TRAIN) return 0;
  for (int i = 0; i < program->weights->count; i++) count += fp8_history(program, &program->weights->items[i]) != NULL;
  return count;
}
