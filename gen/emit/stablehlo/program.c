#include "gen/emit/stablehlo/program.h"

#include <string.h>

#include "gen/base/path.h"
#include "gen/emit/stablehlo/rule.h"
#include "gen/ir/names.h"
#include "gen/program/target.h"
#include "gen/stablehlo/exchange.h"
#include "gen/stablehlo/forward.h"

static const char *module_name(const struct program *program) {
  const char *file = name_in_folder(program->job->model.source);
  const char *stem = without_ending(program->arena, file, ".c");
  return identifier(program->arena, stem != NULL ? stem : file);
}

static bool has_gradient(const struct program *program, const struct weight *weight) {
  for (int i = 0; i < program->gradients->count; i++)
    if (strcmp(program->gradients->items[i].path, weight->path) == 0) return true;
  return false;
}

/* The range that a weight is in; -1: none. */
static int range_of(const struct flat_range_list *ranges, const struct weight *weight) {
  const int64_t first = weight->offset / dtype_size(DTYPE_FLOAT32);
  for (int i = 0; i < ranges->count; i++)
    if (first >= ranges->items[i].first && first < ranges->items[i].end) return i;
  return -1;
}

/* What steps the weight: the rule of elements, by the row of its range, or that of parameters as a whole. */
static void set_rule(const struct program *program, const struct weight *weight, struct hlo_weight *set) {
  const int whole = range_of(&program->optimizer.tensors, weight);
  const int range = range_of(&program->optimizer.flat_ranges, weight);
  if (whole < 0) {
    set->row = range >= 0 ? range : 0;
    return;
  }
  const struct flat_range *of = &program->optimizer.tensors.items[whole];
  set->rule = HLO_TENSORS;
  set->row = whole;
  set->steps = !of->frozen;
  set->matrices = of->matrices;
  set->rows = of->rows;
  set->columns = of->columns;
}

/* Whether each device has a part of the states, or of the weights, too. */
static bool divides(const struct program *program) {
  return program->mesh.devices != AXES;
}

static bool divides_weights(const struct program *program) {
  return divides(program) && program->mesh.axes[program->mesh.devices].weights == PLACED_SPLIT;
}

static struct hlo_weight *weights_of(const struct program *program) {
  struct hlo_weight *weights = arena_alloc(program->arena, ((size_t)program->weights->count + 1) * sizeof *weights);
  for (int i = 0; i < program->weights->count; i++) {
    const struct weight *weight = &program->weights->items[i];
    const struct shape shape = weight->parameter->shape;
    weights[i] =
        (struct hlo_weight){.path = weight->path,
                            .shape = shape,
                            .part = divides(program) ? hlo_part_shape(shape, target_devices(program->job)) : shape,
                            .dtype = weight->parameter->dtype,
                            .steps = has_gradient(program, weight)};
    set_rule(program, weight, &weights[i]);
  }
  return weights;
}

struct states {
  struct hlo_state *items;
  int count, capacity;
};

/* Those of weights, state by state. One without slices mirrors the weights. Of divided ones, those of a part. */
static struct states states_of(const struct program *program) {
  struct states states = {0};
  for (int i = 1; i < program->states.count; i++) {
    const struct state *state = &program->states.items[i];
    if (state->slices != NULL && state->slice_of == NULL) continue;
    for (int w = 0; w < program->weights->count; w++) {
      const struct parameter *parameter = program->weights->items[w].parameter;
      struct hlo_state array = {state->member, w, parameter->shape, state->dtype};
      if (state->slices == NULL && parameter->buffer) array.dtype = parameter->dtype;
      if (state->slices != NULL && state->slice_of[w] == 0) continue;
      if (state->slices != NULL) array.shape = state->slices[state->slice_of[w] - 1].shape;
      if (divides(program)) array.shape = hlo_part_shape(array.shape, target_devices(program->job));
      ARENA_PUSH(program->arena, states, array);
    }
  }
  return states;
}

/* Of what devices divide each has a part alone, which each step changes. */
static bool check_trained(const struct program *program, const struct hlo_step *step, struct diagnostics *diags) {
  const bool averages = program->job->training.ema.decay > 0;
  for (int i = 0; i < step->n_weights && (step->divides_weights || averages); i++) {
    if (step->weights[i].steps) continue;
    diag_error(diags, job_where(program->job, "parallelism.zero_stage"),
               "'%s' is not trained, and devices divide %s that steps change", step->weights[i].path,
               step->divides_weights ? "weights" : "averages of weights");
    diag_help(diags, "use zero_stage: 1%s", averages ? ", and no training.ema" : ", which divides states");
    return false;
  }
  return true;
}

static bool check_divided(const struct program *program, const struct hlo_step *step, struct diagnostics *diags) {
  if (!step->divides_states) return true;
  if (program->mesh.batches.count > 1) {
    diag_error(diags, job_where(program->job, "parallelism.zero_stage"),
               "devices of '%s' divide states among all of them, and not along a part of the mesh yet",
               program->target->name);
    diag_help(diags, "leave out parallelism.dp_replicate and parallelism.dp_shard, or use devices.kind: cpu");
    return false;
  }
  for (int i = 0; i < step->n_states; i++) {
    if (!step->weights[step->states[i].weight].steps || step->states[i].dtype == DTYPE_FLOAT32) continue;
    diag_error(diags, job_where(program->job, "optimizer.state_dtype"),
               "devices of '%s' divide states of 32 bits alone", program->target->name);
    diag_help(diags, "use optimizer.state_dtype: float32, or leave out parallelism.zero_stage and parallelism.fsdp");
    return false;
  }
  return check_trained(program, step, diags);
}

/* `divided`: devices have parts of the weights. */
static const char *make_evaluation(const struct program *program, const struct hlo_weight *weights, bool divided,
                                   struct step_modules *made, struct diagnostics *diags) {
  enum { MOST = 3 };
  const struct region *second = program->entry.second_region;
  const struct region *entry = second != NULL ? second : program->graph->entry;
  const struct value *results[MOST] = {entry->results.items[0]};
  int count = 1;
  if (program->evaluation.count != NULL) results[count++] = program->evaluation.count;
  if (program->evaluation.predicted != NULL) results[count++] = program->evaluation.predicted;
  const struct hlo_forward forward = {.entry = entry,
                                      .weights = weights,
                                      .n_weights = program->weights->count,
                                      .results = results,
                                      .n_results = count,
                                      .devices = divided ? target_devices(program->job) : 1,
                                      .bucket = program->job->parallelism.bucket_bytes};
  const char *name = arena_printf(program->arena, "%s_evaluation", module_name(program));
  struct hlo_module module;
  if (!hlo_make_forward(program->arena, program->graph, name, &forward, &module, diags)) return NULL;
  made->evaluation_random = module.random;
  return module.text;
}

/* Rows of a rule's numbers: one for each of these ranges, or one for all. */
static int rows_of(const struct flat_range_list *ranges) {
  return ranges->count > 0 ? ranges->count : 1;
}

bool step_modules_make(const struct program *program, const char *rule, struct step_modules *made,
                       struct diagnostics *diags) {
  struct arena *arena = program->arena;
  const struct states states = states_of(program);
  struct hlo_step step = {.weights = weights_of(program),
                          .n_weights = program->weights->count,
                          .states = states.items,
                          .n_states = states.count,
                          .micro_steps = program->job->accumulation.num_steps,
                          .devices = target_devices(program->job),
                          .divides_states = divides(program),
                          .divides_weights = divides_weights(program),
                          .bucket = program->job->parallelism.bucket_bytes};
  const bool evaluates_part = program->job->training.ema.evaluate ? step.divides_states : step.divides_weights;
  struct hlo_module module;
  if (!rule_read(arena, rule, &step, diags)) return false;
  step.rules[HLO_ELEMENTS].rows = rows_of(&program->optimizer.flat_ranges);
  step.rules[HLO_TENSORS].rows = rows_of(&program->optimizer.tensors);
  if (!check_divided(program, &step, diags)) return false;
  if (!hlo_make_step(arena, program->graph, module_name(program), &step, &module, diags)) return false;
  *made = (struct step_modules){.main = module.text, .random = module.random};
  made->whole = step.divides_weights ? 0 : step.divides_states ? 1 : program->states.count;
  for (int i = 0; i < HLO_RULES; i++)
    made->numbers[i] = (struct step_numbers){step.rules[i].numbers, step.rules[i].n_numbers, step.rules[i].rows};
  if (job_evaluates(program->job)) made->second = make_evaluation(program, step.weights, evaluates_part, made, diags);
  made->second_name = "evaluation";
  return diags->errors == 0;
}

bool forward_module_make(const struct program *program, struct step_modules *made, struct diagnostics *diags) {
  *made = (struct step_modules){0};
  made->main = make_evaluation(program, weights_of(program), false, made, diags);
  return made->main != NULL;
}

/* `name`: what the module's name ends with. */
static const char *make_text(const struct program *program, const struct region *entry, const char *name,
                             struct diagnostics *diags) {
  bool *kept = arena_alloc(program->arena, ((size_t)program->weights->count + 1) * sizeof *kept);
  for (int i = 0; i < program->weights->count; i++) kept[i] = program->weights->items[i].parameter->passing;
  const struct value *results[] = {entry->results.items[0]};
  const struct hlo_forward forward = {.entry = entry,
                                      .weights = weights_of(program),
                                      .n_weights = program->weights->count,
                                      .kept = kept,
                                      .results = results,
                                      .n_results = 1,
                                      .devices = 1};
  struct hlo_module module;
  name = arena_printf(program->arena, "%s_%s", module_name(program), name);
  return hlo_make_forward(program->arena, program->graph, name, &forward, &module, diags) ? module.text : NULL;
}

bool text_modules_make(const struct program *program, struct step_modules *made, struct diagnostics *diags) {
  const struct region *one = program->entry.second_region;
  *made =
      (struct step_modules){.main = make_text(program, program->graph->entry, "text", diags), .second_name = "step"};
  if (made->main != NULL && one != NULL) made->second = make_text(program, one, "step", diags);
  return diags->errors == 0;
}
