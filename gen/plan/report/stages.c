#include "gen/plan/report/stages.h"

#include "gen/base/quantity.h"
#include "gen/base/text.h"
#include "gen/program/optimizers.h"
#include "gen/program/storage.h"

struct stage_bytes {
  int64_t weights, gradients, optimizer, activations;
};

static bool has(const struct step *step, int stage) {
  return (step->stages >> stage & 1) != 0;
}

static bool receives(const struct program *program, const struct storage *storage, int stage) {
  const struct crossing_list *crossings = &program->ranks.pipeline.crossings;
  for (int i = 0; i < crossings->count; i++)
    if (crossings->items[i].storage == storage && crossings->items[i].to == stage) return true;
  return false;
}

static bool writes(const struct function *function, const struct storage *storage, int stage) {
  for (int i = 0; i < function->n_steps; i++)
    for (int k = 0; has(&function->steps[i], stage) && k < function->steps[i].node->n_outputs; k++) {
      const struct view *output = &function->steps[i].outputs[k];
      if (output->storage != NULL && storage_root(output->storage) == storage) return true;
    }
  return false;
}

/* What a stage keeps of a micro-batch in a function that stages divide. */
static int64_t saved_bytes(const struct program *program, const struct function *function, int stage) {
  int64_t bytes = 0;
  for (int i = 0; i < function->storages.count; i++) {
    const struct storage *storage = function->storages.items[i];
    if (storage->kind != STORAGE_SAVED || storage->frame != NULL) continue;
    if (writes(function, storage, stage))
      bytes += arena_aligned(storage_bytes(storage));
    else if (receives(program, storage, stage)) /* one copy of a row of them */
      bytes += arena_aligned(storage->count * dtype_size(storage->dtype));
  }
  for (int i = 0; i < function->n_steps; i++) {
    const struct step *step = &function->steps[i];
    if (step->callee == NULL || !has(step, stage)) continue;
    bytes += step->callee->staged ? saved_bytes(program, step->callee, stage)
                                  : step->node->call->count * step->callee->saved_bytes;
  }
  return bytes;
}

static struct stage_bytes bytes_of(const struct program *program, int stage) {
  struct stage_bytes bytes = {0};
  int64_t elements = 0, size = dtype_size(DTYPE_FLOAT32);
  for (int i = 0; i < program->optimizer.flat_ranges.count; i++) {
    const struct flat_range *range = &program->optimizer.flat_ranges.items[i];
    if (range->stage == stage) elements += range->end - range->first;
  }
  bytes.weights = bytes.gradients = elements * size;
  if (program->bits16 != DTYPE_FLOAT32) bytes.weights += elements * dtype_size(program->bits16);
  bytes.optimizer = elements * size * optimizer_states(program->job);
  bytes.activations = program->ranks.pipeline.rooms[stage] * saved_bytes(program, program->entry.forward, stage);
  return bytes;
}

static double bubble(const struct program *program) {
  double stages = program->ranks.pipeline.stages, micro_batches = (double)program->job->accumulation.num_steps;
  return (stages - 1) / (micro_batches + stages - 1);
}

static const char *const schedules[] = {[SCHEDULE_1F1B] = "1f1b", [SCHEDULE_GPIPE] = "gpipe"};

const char *stages_text(const struct program *program) {
  const struct pipeline *pipeline = &program->ranks.pipeline;
  struct text text = text_in(program->arena);
  if (pipeline->stages == 0) return "";
  text_printf(&text,
              "stages    %d of %d layers each (pp), %lld micro-batches (%s): each waits for others %.1f %% of a step\n",
              pipeline->stages, pipeline->layers[0]->call->count, (long long)program->job->accumulation.num_steps,
              schedules[program->job->parallelism.pp_schedule], 100 * bubble(program));
  for (int k = 0; k < pipeline->stages; k++) {
    const struct stage_bytes bytes = bytes_of(program, k);
    text_printf(&text, "stage %-3d uses weights %s, gradients %s, optimizer %s, activations %s (of %lld)\n", k,
                bytes_text(program->arena, bytes.weights), bytes_text(program->arena, bytes.gradients),
                bytes_text(program->arena, bytes.optimizer), bytes_text(program->arena, bytes.activations),
                (long long)pipeline->rooms[k]);
  }
  return text_string(&text);
}

json_t *stages_json(const struct program *program) {
  const struct pipeline *pipeline = &program->ranks.pipeline;
  json_t *list = json_array();
  for (int k = 0; k < pipeline->stages; k++) {
    const struct stage_bytes bytes = bytes_of(program, k);
    json_array_append_new(list,
                          json_pack("{s:i, s:I, s:I, s:I, s:I, s:I}", "layers", pipeline->layers[k]->call->count,
                                    "weights", (json_int_t)bytes.weights, "gradients", (json_int_t)bytes.gradients,
                                    "optimizer", (json_int_t)bytes.optimizer, "activations",
                                    (json_int_t)bytes.activations, "micro_batches", (json_int_t)pipeline->rooms[k]));
  }
  return json_pack("{s:s, s:I, s:f, s:o}", "schedule", schedules[program->job->parallelism.pp_schedule],
                   "micro_batches", (json_int_t)program->job->accumulation.num_steps, "bubble", bubble(program),
                   "stages", list);
}
