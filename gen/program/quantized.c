#include "gen/program/quantized.h"

#include "gen/base/path.h"
#include "gen/program/weights.h"

const char *quantized_name(const struct job *job, enum quantized_part part) {
  static const char *const names[][QUANTIZED_PARTS] = {
      [QUANT_NF4] = {"weight_nf4_absmax", "weight_nf4_nested_absmax", "weight_nf4_nested_offset"},
      [QUANT_FP4] = {"weight_fp4_absmax", "weight_fp4_nested_absmax", "weight_fp4_nested_offset"},
      [QUANT_INT8] = {"SCB", NULL, NULL},
      [QUANT_INT8_GROUPS] = {"weight_int8_scale", NULL, NULL},
      [QUANT_INT4_GROUPS] = {"weight_int4_scale_and_zero", NULL, NULL},
      [QUANT_Q8_0] = {NULL, NULL, NULL},
      [QUANT_Q4_0] = {NULL, NULL, NULL},
      [QUANT_Q4_K] = {NULL, NULL, NULL},
  };
  return names[job->model.quantize.type][part];
}

const struct weight *quantized_buffer(const struct program *program, const struct quantized *quantized,
                                      enum quantized_part part) {
  const char *name = quantized_name(program->job, part);
  if (name == NULL) return NULL;
  const char *prefix = without_ending(program->arena, quantized->weight, "weight");
  return weight_named(program->weights, arena_printf(program->arena, "%s%s", prefix, name));
}
