#include "gen/plan/report/stages.h"

#include <string.h>

#include "gen/base/quantity.h"
#include "gen/base/text.h"
#include "gen/plan/ranks/stage_traffic.h"
#include "gen/program/sharding.h"
#include "gen/program/stage_parameters.h"
#include "gen/program/storage.h"
#include "gen/program/weights.h"

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

/* Whether a stage has made what a function that stages divide gives: the last of them. */
static bool gives(const struct program *program, const struct step *step, int stage) {
  const bool divided = step->callee != NULL && step->callee->staged;
  return !divided || stage == (step->callee->forward != NULL ? 0 : program->ranks.pipeline.stages - 1);
}

/* Whether a stage makes it in the function, or in its backward for what is deferred there. */
static bool writes(const struct program *program, const struct function *function, const struct storage *storage,
                   int stage) {
  for (int i = 0; i < function->n_steps; i++)
    for (int k = 0; has(&function->steps[i], stage) && gives(program, &function->steps[i], stage) &&
                    k < function->steps[i].node->n_outputs;
         k++) {
      const struct view *output = &function->steps[i].outputs[k];
      if (output->storage != NULL && storage_root(output->storage) == storage) return true;
    }
  if (function->backward != NULL && function->backward->deferred != NULL)
    return writes(program, function->backward, storage, stage);
  return false;
}

/* What a stage saves of a micro-batch in a function that stages divide. */
static int64_t saved_bytes(const struct program *program, const struct function *function, int stage) {
  int64_t bytes = 0;
  for (int i = 0; i < function->storages.count; i++) {
    const struct storage *storage = function->storages.items[i];
    if (storage->kind != STORAGE_SAVED || storage->frame != NULL) continue;
    if (writes(program, function, storage, stage))
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

/* Gradients of a stage on their way, which have memory of their own. */
static int64_t outgoing_bytes(const struct program *program, int stage) {
  const struct crossing_list *crossings = &program->ranks.pipeline.crossings;
  int64_t bytes = 0;
  for (int i = 0; i < crossings->count; i++) {
    const struct crossing *crossing = &crossings->items[i];
    if (crossing->outgoing != NULL && crossing->from == stage)
      bytes += arena_aligned(crossing->count * dtype_size(crossing->storage->dtype));
  }
  return bytes;
}

/* Elements of a rank's shards of what its stages have. */
static int64_t own_elements(const struct program *program, int rank) {
  int64_t elements = 0;
  for (int i = 0; i < program->optimizer.flat_ranges.count; i++) {
    const struct flat_range *range = &program->optimizer.flat_ranges.items[i];
    if (range->stage == rank) elements += shard_last(program, range);
  }
  return elements;
}

/* What a rank has of a state of the optimizer. */
static int64_t state_part(const struct program *program, const struct state *state, int rank) {
  const struct stage_range_list *ranges = &program->ranks.pipeline.ranges;
  int64_t elements = 0;
  if (is_sharded(program)) return own_elements(program, rank) * dtype_size(state->dtype);
  for (int i = 0; i < state->n_slices; i++)
    if (rank_uses(&program->ranks.pipeline, rank, state->slices[i].weight->path))
      elements += shape_count(state->slices[i].shape);
  for (int i = 0; i < ranges->count && state->n_slices == 0; i++)
    if (ranges->items[i].stage == rank) elements += ranges->items[i].end - ranges->items[i].first;
  return elements * dtype_size(state->dtype);
}

/* Bytes of a tree in which a rank's stages have their weights or gradients: of layers that are where others are, too,
 * once. */
static int64_t held_bytes(const struct program *program, const struct weight_tree *tree, int rank) {
  int64_t bytes = 0, *offsets = arena_alloc(program->arena, ((size_t)program->weights->count + 1) * sizeof *offsets);
  int count = 0;
  for (int i = 0; i < program->weights->count; i++) {
    const struct weight *weight = &program->weights->items[i];
    if (!rank_uses(&program->ranks.pipeline, rank, weight->path) || weight->gradient < 0) continue;
    const int64_t offset = weight_offset(tree, weight->path);
    bool again = false;
    for (int k = 0; k < count && !again; k++) again = offsets[k] == offset;
    if (again) continue;
    offsets[count++] = offset;
    bytes += arena_aligned(shape_count(weight->parameter->shape) * dtype_size(DTYPE_FLOAT32));
  }
  return bytes;
}

/* Of a rank's stages. */
static struct stage_bytes bytes_of(const struct program *program, int rank) {
  const struct pipeline *pipeline = &program->ranks.pipeline;
  struct stage_bytes bytes = {0};
  int64_t elements = 0, size = dtype_size(DTYPE_FLOAT32);
  for (int i = 0; i < pipeline->ranges.count; i++) {
    const struct stage_range *range = &pipeline->ranges.items[i];
    if (range->stage != rank) continue;
    elements += range->end - range->first;
    if (range->gradient >= 0) bytes.gradients += (range->end - range->first) * size;
  }
  const int64_t own = own_elements(program, rank) * size;
  const bool parts = program->kind == PROGRAM_TRAIN && weights_are_split(program);
  if (parts) elements = held_bytes(program, program->weights, rank) / size;
  bytes.weights = elements * size + (parts ? own : 0);
  if (shard_adds_up(program)) bytes.gradients = held_bytes(program, program->gradients, rank);
  if (shard_has_own_gradients(program)) bytes.gradients += own;
  if (shard_needs_receive_buffer(program)) bytes.gradients += own;
  if (program->bits16 != DTYPE_FLOAT32) bytes.weights += elements * dtype_size(program->bits16);
  for (int i = 0; i < program->states.count; i++)
    if (strcmp(program->states.items[i].file, "optimizer") == 0)
      bytes.optimizer += state_part(program, &program->states.items[i], rank);
  for (int s = rank; s < pipeline->stages; s += pipeline->ranks)
    bytes.activations +=
        pipeline->slots[s] * saved_bytes(program, program->entry.forward, s) + outgoing_bytes(program, s);
  return bytes;
}

/* Of stages that take equally long. ZB-H1 (arXiv:2401.10241, section 2.3) with a forward, gradients of inputs and
 * gradients of weights that take a third each: of (N - 1) (F + B - W), and of what fewer micro-batches than stages
 * leave of it unfilled. */
static double bubble(const struct program *program) {
  const struct schedule *schedule = &program->ranks.pipeline.schedule;
  double ranks = (double)schedule->ranks, actions = (double)(schedule->chunks * schedule->micro_batches);
  if (schedule->defers) {
    double waits = ranks - 1 + (actions < ranks ? ranks - actions : 0);
    return waits / (3 * actions + waits);
  }
  return (ranks - 1) / (actions + ranks - 1);
}

static const char *const schedules[] = {[SCHEDULE_1F1B] = "1f1b",
                                        [SCHEDULE_GPIPE] = "gpipe",
                                        [SCHEDULE_INTERLEAVED] = "interleaved",
                                        [SCHEDULE_ZERO_BUBBLE] = "zero_bubble"};

/* "2" of its stage; "7 and 3" of its stages. */
static const char *slots_text(const struct program *program, int rank) {
  const struct pipeline *pipeline = &program->ranks.pipeline;
  struct text text = text_in(program->arena);
  for (int s = rank; s < pipeline->stages; s += pipeline->ranks)
    text_printf(&text, "%s%lld",
                s == rank                                ? ""
                : s + pipeline->ranks < pipeline->stages ? ", "
                                                         : " and ",
                (long long)pipeline->slots[s]);
  return text_string(&text);
}

static int layers_of(const struct pipeline *pipeline, int rank) {
  int layers = 0;
  for (int s = rank; s < pipeline->stages; s += pipeline->ranks) layers += pipeline->layers[s]->call->count;
  return layers;
}

/* "2 of 4 layers each"; "3 of 1, 2 and 1 layers". */
static const char *layers_text(const struct program *program, bool each) {
  const struct pipeline *pipeline = &program->ranks.pipeline;
  struct text text = text_in(program->arena);
  const int first = pipeline->layers[0]->call->count, last = pipeline->stages - 1;
  bool equal = true;
  for (int k = 1; k <= last; k++) equal = equal && pipeline->layers[k]->call->count == first;
  text_printf(&text, "%d of %d", pipeline->stages, first);
  for (int k = 1; k <= last && !equal; k++)
    text_printf(&text, "%s%d", k < last ? ", " : " and ", pipeline->layers[k]->call->count);
  text_printf(&text, " layers%s", each && equal ? " each" : "");
  return text_string(&text);
}

/* Of a program that does not train. */
static const char *forward_text(const struct program *program) {
  const struct pipeline *pipeline = &program->ranks.pipeline;
  struct text text = text_in(program->arena);
  text_printf(&text, "stages    %s (pp), one after the other\n", layers_text(program, true));
  for (int k = 0; k < pipeline->stages; k++)
    text_printf(&text, "stage %-3d uses weights %s\n", k, bytes_text(program->arena, bytes_of(program, k).weights));
  return text_string(&text);
}

const char *stages_text(const struct program *program) {
  const struct pipeline *pipeline = &program->ranks.pipeline;
  const bool several = pipeline->stages > pipeline->ranks;
  struct text text = text_in(program->arena);
  if (pipeline->stages == 0) return "";
  if (program->kind != PROGRAM_TRAIN) return forward_text(program);
  text_printf(&text, "stages    %s (pp), ", layers_text(program, !several));
  if (several) text_printf(&text, "%lld a rank, ", (long long)pipeline->schedule.chunks);
  text_printf(&text, "%lld micro-batches (%s): each waits%s %.1f %% of a step\n",
              (long long)program->job->accumulation.num_steps, schedules[program->job->parallelism.pp_schedule],
              several ? "" : " for others", 100 * bubble(program));
  for (int k = 0; k < pipeline->ranks; k++) {
    const struct stage_bytes bytes = bytes_of(program, k);
    text_printf(&text,
                "%-5s %-3d uses weights %s, gradients %s, optimizer %s, activations %s (of %s)\n"
                "          sends %s\n",
                several ? "rank" : "stage", k, bytes_text(program->arena, bytes.weights),
                bytes_text(program->arena, bytes.gradients), bytes_text(program->arena, bytes.optimizer),
                bytes_text(program->arena, bytes.activations), slots_text(program, k),
                bytes_text(program->arena, stage_sent_bytes(program, k)));
  }
  return text_string(&text);
}

/* By the stages of a rank. */
static json_t *slots_json(const struct pipeline *pipeline, int rank) {
  json_t *list = json_array();
  for (int s = rank; s < pipeline->stages; s += pipeline->ranks)
    json_array_append_new(list, json_integer((json_int_t)pipeline->slots[s]));
  return list;
}

json_t *stages_json(const struct program *program) {
  const struct pipeline *pipeline = &program->ranks.pipeline;
  json_t *list = json_array();
  for (int k = 0; k < pipeline->ranks; k++) {
    const struct stage_bytes bytes = bytes_of(program, k);
    json_t *stage = json_pack("{s:i, s:I, s:I, s:I, s:I, s:I, s:o}", "layers", layers_of(pipeline, k), "weights",
                              (json_int_t)bytes.weights, "gradients", (json_int_t)bytes.gradients, "optimizer",
                              (json_int_t)bytes.optimizer, "activations", (json_int_t)bytes.activations,
                              "micro_batches", (json_int_t)pipeline->slots[k], "chunks", slots_json(pipeline, k));
    if (program->kind == PROGRAM_TRAIN)
      json_object_set_new(stage, "sends", json_integer((json_int_t)stage_sent_bytes(program, k)));
    json_array_append_new(list, stage);
  }
  return json_pack("{s:s, s:I, s:f, s:o}", "schedule", schedules[program->job->parallelism.pp_schedule],
                   "micro_batches", (json_int_t)program->job->accumulation.num_steps, "bubble", bubble(program),
                   "stages", list);
}
