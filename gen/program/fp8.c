#include "gen/program/fp8.h"

#include <string.h>

#include "gen/program/target.h"
#include "gen/program/weights.h"

const char fp8_scale_beginning[] = "fp8_scale_";
const char fp8_history_beginning[] = "fp8_amax_history_";
const char fp8_gradient[] = "grad_output";

static const char *last_name(const char *path) {
  const char *dot = strrchr(path, '.');
  return dot != NULL ? dot + 1 : path;
}

static bool begins_with(const char *text, const char *beginning) {
  return strncmp(text, beginning, strlen(beginning)) == 0;
}

bool is_fp8_state(const char *name) {
  const char *last = last_name(name);
  return begins_with(last, fp8_scale_beginning) || begins_with(last, fp8_history_beginning);
}

const struct weight *fp8_history(const struct program *program, const struct weight *scale) {
  const char *last = last_name(scale->path);
  if (!scale->parameter->buffer || !begins_with(last, fp8_scale_beginning)) return NULL;
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

int64_t fp8_scales(const struct program *program) {
  int64_t count = 0;
  if (!program->job->precision.fp8.on || program->kind != PROGRAM_TRAIN) return 0;
  for (int i = 0; i < program->weights->count; i++) count += fp8_history(program, &program->weights->items[i]) != NULL;
  return count;
}
