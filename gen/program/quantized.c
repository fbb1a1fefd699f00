#include "gen/program/quantized.h"

#include "gen/program/weights.h"

const char *quantized_suffix(const struct job *job, enum quantized_part part) {
  static const char *const suffixes[][QUANTIZED_PARTS] = {
      [QUANT_NF4] = {"_nf4_absmax", "_nf4_nested_absmax", "_nf4_nested_offset"},
      [QUANT_FP4] = {"_fp4_absmax", "_fp4_nested_absmax", "_fp4_nested_offset"},
  };
  return suffixes[job->model.quantize.type][part];
}

const struct weight *quantized_buffer(const struct program *program, const struct quantized *quantized,
                                      enum quantized_part part) {
  const char *suffix = quantized_suffix(program->job, part);
  return weight_named(program->weights, arena_printf(program->arena, "%s%s", quantized->weight, suffix));
}
