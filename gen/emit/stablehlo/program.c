#include "gen/emit/stablehlo/program.h"

#include <string.h>

#include "gen/base/path.h"
#include "gen/emit/stablehlo/rule.h"
#include "gen/ir/names.h"
#include "gen/program/target.h"
#include "gen/stablehlo/forward.h"

static const char *module_name(const struct program *program) {
  const char *file = name_in_folder(program->job->model.source);
  const char *stem = without_ending(program->arena, file, ".c");
  return identifier(program->arena, stem != NULL ? stem : file);
}

/* The flat range that a weight is in: whose numbers its update takes. */
static int row_of(const struct program *program, const struct weight *weight) {
  const struct flat_range_list *ranges = &program->optimizer.flat_ranges;
  const int64_t first = weight->offset / dtype_size(DTYPE_FLOAT32);
  for (int i = 0; i < ranges->count; i++)
    if (first >= ranges->items[i].first && first < ranges->items[i].end) return i;
  return 0;
}

static bool has_gradient(const struct program *program, const struct weight *weight) {
  for (int i = 0; i < program->gradients->count; i++)
    if (strcmp(program->gradients->items[i].path, weight->path) == 0) return true;
  return false;
}

static struct hlo_weight *weights_of(const struct program *program) {
  struct hlo_weight *weights = arena_alloc(program->arena, ((size_t)program->weights->count + 1) * sizeof *weights);
  for (int i = 0; i < program->weights->count; i++) {
    const struct weight *weight = &program->weights->items[i];
    weights[i] = (struct hlo_weight){weight->path, weight->parameter->shape, weight->parameter->dtype,
                                     has_gradient(program, weight), row_of(program, weight)};
  }
  return weights;
}

static const char *make_evaluation(const struct program *program, const struct hlo_weight *weights,
                                   struct step_modules *made, struct diagnostics *diags) {
  enum { MOST = 3 };
  const struct region *second = program->entry.second_region;
  const struct region *entry = second != NULL ? second : program->graph->entry;
  const struct value *results[MOST] = {entry->results.items[0]};
  int count = 1;
  if (program->evaluation.count != NULL) results[count++] = program->evaluation.count;
  if (program->evaluation.predicted != NULL) results[count++] = program->evaluation.predicted;
  const struct hlo_forward forward = {entry, weights, program->weights->count, results, count};
  const char *name = arena_printf(program->arena, "%s_evaluation", module_name(program));
  struct hlo_module module;
  if (!hlo_make_forward(program->arena, program->graph, name, &forward, &module, diags)) return NULL;
  made->evaluation_random = module.random;
  return module.text;
}

bool step_modules_make(const struct program *program, const char *rule, struct step_modules *made,
                       struct diagnostics *diags) {
  struct arena *arena = program->arena;
  const struct hlo_rule *read = rule_read(arena, rule, diags);
  if (read == NULL) return false;
  const struct hlo_weight *weights = weights_of(program);
  const int ranges = program->optimizer.flat_ranges.count;
  const struct hlo_step step = {.weights = weights,
                                .n_weights = program->weights->count,
                                .rows = ranges > 0 ? ranges : 1,
                                .micro_steps = program->job->accumulation.num_steps,
                                .devices = target_devices(program->job),
                                .average = program->job->training.ema.decay > 0 ? read->n_arrays - 1 : 0,
                                .rule = *read};
  struct hlo_module module;
  if (!hlo_make_step(arena, program->graph, module_name(program), &step, &module, diags)) return false;
  *made = (struct step_modules){.main = module.text,
                                .numbers = read->numbers,
                                .n_numbers = read->n_numbers,
                                .rows = step.rows,
                                .random = module.random};
  if (job_evaluates(program->job)) made->evaluation = make_evaluation(program, weights, made, diags);
  return diags->errors == 0;
}

bool forward_module_make(const struct program *program, struct step_modules *made, struct diagnostics *diags) {
  *made = (struct step_modules){0};
  made->main = make_evaluation(program, weights_of(program), made, diags);
  return made->main != NULL;
}
