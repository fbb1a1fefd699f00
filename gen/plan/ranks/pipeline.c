#include "gen/plan/ranks/pipeline.h"

#include <string.h>

#include "gen/plan/graph/stages.h"
#include "gen/plan/ranks/fsdp_layers.h"
#include "gen/plan/ranks/pipeline_schedule.h"
#include "gen/plan/ranks/receive.h"
#include "gen/plan/ranks/shard.h"
#include "gen/plan/ranks/stage_traffic.h"
#include "gen/program/sharding.h"
#include "gen/program/stage_parameters.h"
#include "gen/program/storage.h"
#include "gen/program/target.h"

struct staging {
  struct program *program;
  struct diagnostics *diags;
  bool *
      *used; /* by position of a function, at stage * inputs + input: what the stage's statements take of its caller */
  bool revisits; /* several stages of a rank use a value that another stage has made */
};

static int position_of(const struct program *program, const struct function *function) {
  int i = 0;
  while (program->functions.items[i] != function) i++;
  return i;
}

static bool is_backward(const struct function *function) {
  return function->forward != NULL;
}

/* The stage whose layers a statement runs, forwards or backwards; -1: it is not such a loop. */
static int stage_of_loop(const struct program *program, const struct step *step) {
  if (step->node->call == NULL) return -1;
  const struct node *forward = step->node->call->forward != NULL ? step->node->call->forward : step->node;
  return stage_of_layers(&program->ranks.pipeline, forward);
}

/* ---- Whose a statement is ---- */

/* The stages whose layers a statement runs: sets the first one. 0: none. */
static int stages_of(const struct program *program, const struct step *step, int *first) {
  const int layers = stage_of_loop(program, step);
  *first = layers >= 0 ? layers : step->callee != NULL ? step->callee->first_stage : 0;
  return layers >= 0 ? 1 : step->callee != NULL ? step->callee->n_stages : 0;
}

/* Those of a function, whose callees know theirs. */
static void find_stages(const struct program *program, struct function *function) {
  int end = 0, first;
  for (int i = 0; i < function->n_steps; i++) {
    const int stages = stages_of(program, &function->steps[i], &first);
    if (stages == 0) continue;
    if (end == 0 || first < function->first_stage) function->first_stage = first;
    if (first + stages > end) end = first + stages;
  }
  function->n_stages = end - function->first_stage;
  function->staged = function->n_stages > 1;
}

/* The stage that a function's last statements are of. */
static int last_of(const struct function *function) {
  return function->first_stage + (is_backward(function) ? 0 : function->n_stages - 1);
}

/* In the backward what comes before the layers of a stage is its own, but for what is between a decoder and an
 * encoder, which the forward, too, gives to the decoder. */
static int before_layers(const struct program *program, const struct function *function, int stage) {
  const int split = program->ranks.pipeline.split, end = function->first_stage + function->n_stages;
  return is_backward(function) && stage + 1 == split && split < end ? split : stage;
}

/* The stages come one after the other, in the backward from the last to the first: a statement is of the stage whose
 * layers come next, and after all layers of the one that was the last of them. */
static void give_stages(struct staging *staging, struct function *function) {
  const struct program *program = staging->program;
  find_stages(program, function);
  int stage = function->n_stages > 0 ? last_of(function) : 0;
  for (int i = function->n_steps - 1; i >= 0; i--) {
    struct step *step = &function->steps[i];
    int first;
    const int stages = stages_of(program, step, &first);
    if (stages > 0) stage = is_backward(function) ? first : first + stages - 1;
    step->stage = stage;
    step->stages = UINT32_C(1) << stage;
    for (int k = first; k < first + stages; k++) step->stages |= UINT32_C(1) << k;
    if (stages > 0) stage = before_layers(program, function, is_backward(function) ? first + stages - 1 : first);
  }
}

/* ---- What it needs ---- */

static bool has(const struct step *step, int stage) {
  return (step->stages >> stage & 1) != 0;
}

static bool is_staged_call(const struct step *step) {
  return step->callee != NULL && step->callee->staged;
}

static bool writes(const struct step *step, const struct storage *storage) {
  for (int i = 0; i < step->node->n_outputs; i++)
    if (step->outputs[i].storage != NULL && storage_root(step->outputs[i].storage) == storage) return true;
  return false;
}

/* The last statement before `before` that writes the storage; NULL: none does. */
static struct step *writer_of(const struct function *function, const struct storage *storage, int before) {
  for (int i = before - 1; i >= 0; i--)
    if (writes(&function->steps[i], storage)) return &function->steps[i];
  return NULL;
}

/* Whether a statement is one kernel over samples and constants alone. */
static bool is_of_samples(const struct function *function, const struct step *step) {
  if (step->callee != NULL) return false;
  for (int i = 0; i < step->node->n_inputs; i++) {
    const struct storage *storage = step->inputs[i].storage;
    if (storage == NULL) continue;
    storage = storage_root((struct storage *)storage);
    if (storage->kind == STORAGE_INPUT) continue;
    if (storage->kind == STORAGE_WEIGHT || storage->kind == STORAGE_GRADIENT) return false;
    const struct step *writer = writer_of(function, storage, (int)(step - function->steps));
    if (writer == NULL || !is_of_samples(function, writer)) return false;
  }
  return true;
}

/* The first element of the copy that a view is of, where its storage has several. */
static int64_t copy_of(const struct view *view) {
  const struct storage *storage = storage_root(view->storage);
  return storage->copies > 1 ? view->offset / storage->count * storage->count : 0;
}

/* Whether what a view is of is passed on to a stage. */
static bool crosses(const struct pipeline *pipeline, const struct view *view, int to) {
  const struct storage *storage = storage_root(view->storage);
  for (int i = 0; i < pipeline->crossings.count; i++) {
    const struct crossing *crossing = &pipeline->crossings.items[i];
    if (crossing->storage == storage && crossing->first == copy_of(view) && crossing->to == to) return true;
  }
  return false;
}

static void add_crossing(struct staging *staging, const struct function *function, const struct view *view, int from,
                         int to) {
  struct pipeline *pipeline = &staging->program->ranks.pipeline;
  const struct storage *storage = storage_root(view->storage);
  struct crossing crossing = {.function = function,
                              .storage = storage,
                              .first = copy_of(view),
                              .count = storage->count,
                              .from = from,
                              .to = to};
  for (int i = 0; i < pipeline->crossings.count; i++) {
    const struct crossing *known = &pipeline->crossings.items[i];
    if (known->storage == storage && known->first == crossing.first && known->to == to) return;
  }
  ARENA_PUSH(staging->program->arena, pipeline->crossings, crossing);
}

/* Whether a stage's rank has what a stage before it has passed on: one of its own stages has made or received it, in
 * memory that all of them use, as long as a micro-batch needs it. It may still be sent from there, so that nothing may
 * be received there again. */
static bool is_there_already(const struct pipeline *pipeline, const struct function *function,
                             const struct storage *storage, int from, int to) {
  return to - from >= pipeline->ranks && (storage->kind == STORAGE_SAVED || function->backward == NULL) &&
         !is_backward(function);
}

/* A value is passed from stage to stage until it is where it is needed. */
static void pass_on(struct staging *staging, const struct function *function, const struct view *view, int from,
                    int to) {
  const int way = to > from ? 1 : -1;
  for (int k = from; k != to; k += way) {
    if (is_there_already(&staging->program->ranks.pipeline, function, storage_root(view->storage), from, k + way))
      staging->revisits = true;
    else
      add_crossing(staging, function, view, k, k + way);
  }
}

static bool fail(const struct staging *staging, const struct step *step, int stage) {
  diag_error(staging->diags, job_where(staging->program->job, "parallelism.pp"),
             "stage %d of the model needs a value of a stage after it", stage);
  diag_note(staging->diags, step->node->where, "it is needed here");
  diag_help(staging->diags, "let layers use values of layers before them alone, or leave parallelism.pp out");
  return false;
}

static bool need(struct staging *staging, struct function *function, struct step *step, int stage);

/* A statement of a stage reads a view. */
static bool need_view(struct staging *staging, struct function *function, struct step *step, const struct view *view,
                      int stage) {
  const struct pipeline *pipeline = &staging->program->ranks.pipeline;
  if (view->storage == NULL) return true;
  const struct storage *storage = storage_root(view->storage);
  if (storage->kind == STORAGE_WEIGHT || storage->kind == STORAGE_GRADIENT) return true;
  if (storage->kind == STORAGE_INPUT) {
    int inputs = function->region->inputs.count;
    staging->used[position_of(staging->program, function)][stage * inputs + storage->index] = true;
    return true;
  }
  struct step *writer = writer_of(function, storage, (int)(step - function->steps));
  if (writer == NULL) { /* the forward has written it, or the backward before what it defers */
    if (function->forward == NULL) return fail(staging, step, stage);
    const struct function *forward = function->forward, *rest = forward->backward;
    writer = is_deferred(function) ? writer_of(rest, storage, rest->n_steps) : NULL;
    if (writer != NULL) return has(writer, stage) || crosses(pipeline, view, stage) || fail(staging, step, stage);
    writer = writer_of(forward, storage, forward->n_steps);
    if (crosses(pipeline, view, stage)) return true;
    if (writer != NULL && is_there_already(pipeline, forward, storage, writer->stage, stage)) return true;
    return (writer != NULL && has(writer, stage) && (!is_staged_call(writer) || stage == writer->stage)) ||
           fail(staging, step, stage);
  }
  if (stage == writer->stage || (has(writer, stage) && !is_staged_call(writer))) return true;
  if (is_of_samples(function, writer)) return need(staging, function, writer, stage);
  if ((stage > writer->stage) == is_backward(function)) return fail(staging, step, stage);
  pass_on(staging, function, view, writer->stage, stage);
  return true;
}

static bool need(struct staging *staging, struct function *function, struct step *step, int stage) {
  const bool *taken = NULL;
  if (is_staged_call(step))
    taken = staging->used[position_of(staging->program, step->callee)] + stage * step->node->n_inputs;
  step->stages |= UINT32_C(1) << stage;
  for (int i = 0; i < step->node->n_inputs; i++)
    if ((taken == NULL || taken[i]) && !need_view(staging, function, step, &step->inputs[i], stage)) return false;
  for (int i = 0; i < step->node->n_outputs; i++)
    if (step->accumulate != NULL && step->accumulate[i] &&
        !need_view(staging, function, step, &step->outputs[i], stage))
      return false;
  return true;
}

static bool gives_result(const struct step *step) {
  for (int i = 0; i < step->node->n_outputs; i++)
    if (step->outputs[i].storage != NULL && storage_root(step->outputs[i].storage)->kind == STORAGE_RESULT) return true;
  return false;
}

/* The last of its stages has what a forward gives. */
static bool need_results(struct staging *staging, struct function *function) {
  const int last = last_of(function);
  for (int i = 0; i < function->n_steps && !is_backward(function); i++) {
    struct step *step = &function->steps[i];
    if (!gives_result(step) || has(step, last)) continue;
    for (int k = 0; k < step->node->n_outputs && !is_of_samples(function, step); k++)
      if (step->outputs[k].storage != NULL && storage_root(step->outputs[k].storage)->kind == STORAGE_RESULT)
        pass_on(staging, function, &step->outputs[k], step->stage, last);
    if (is_of_samples(function, step) && !need(staging, function, step, last)) return false;
  }
  return true;
}

static bool need_all(struct staging *staging, struct function *function) {
  const int stages = staging->program->ranks.pipeline.stages;
  size_t inputs = (size_t)function->region->inputs.count;
  bool *used = arena_alloc(staging->program->arena, (inputs * (size_t)stages + 1) * sizeof *used);
  staging->used[position_of(staging->program, function)] = used;
  for (int i = 0; i < function->n_steps; i++)
    for (int k = 0; k < stages; k++)
      if (has(&function->steps[i], k) && (function->steps[i].stage == k || is_staged_call(&function->steps[i])) &&
          !need(staging, function, &function->steps[i], k))
        return false;
  return need_results(staging, function);
}

/* ---- Schedules ---- */

static void plan_schedule(struct program *program, bool revisits) {
  struct pipeline *pipeline = &program->ranks.pipeline;
  const struct job *job = program->job;
  const bool trains = program->kind == PROGRAM_TRAIN;
  pipeline->schedule =
      schedule_of(program->arena, trains ? job->parallelism.pp_schedule : SCHEDULE_1F1B, pipeline->ranks,
                  pipeline->stages / pipeline->ranks, trains ? job->accumulation.num_steps : 1);
  pipeline->slots = schedule_slots(program->arena, &pipeline->schedule);
  /* What several stages of a rank use, such as an encoder's result, has one buffer there: for as long as the first of
   * them needs a micro-batch, that is in one slot of all. */
  for (int k = 0; k < pipeline->stages && revisits; k++) pipeline->slots[k] = pipeline->slots[k % pipeline->ranks];
  for (int k = 0; k < pipeline->stages; k++)
    if (pipeline->slots[k] > pipeline->max_slots) pipeline->max_slots = pipeline->slots[k];
}

/* Whether a stage gets several gradients of another one. */
static bool gets_several(const struct pipeline *pipeline) {
  const struct crossing_list *list = &pipeline->crossings;
  for (int i = 0; i < list->count; i++)
    for (int k = 0; k < i && list->items[i].from > list->items[i].to; k++)
      if (list->items[k].from == list->items[i].from && list->items[k].to == list->items[i].to) return true;
  return false;
}

/* Gradients that are sent while their rank continues need memory that the next backward does not write; likewise
 * what a forward does not save needs memory that the next one does not write. */
static void give_memory(struct program *program) {
  struct pipeline *pipeline = &program->ranks.pipeline;
  pipeline->schedule.starts |= gets_several(pipeline); /* it would wait for what it sends between two of them */
  for (int i = 0; i < pipeline->crossings.count; i++) {
    struct crossing *crossing = &pipeline->crossings.items[i];
    const bool saved = crossing->storage->kind == STORAGE_SAVED || crossing->function->backward == NULL;
    if (crossing->from > crossing->to ? pipeline->schedule.starts : !saved)
      crossing->outgoing = arena_printf(program->arena, "outgoing_%d", i);
  }
}

bool plan_pipeline(struct program *program, struct diagnostics *diags) {
  if (program->ranks.pipeline.stages == 0) return true;
  struct staging staging = {.program = program, .diags = diags};
  staging.used = arena_alloc(program->arena, (size_t)program->functions.count * sizeof *staging.used);
  for (int i = 0; i < program->functions.count; i++) {
    struct function *function = program->functions.items[i];
    give_stages(&staging, function);
    if (function->staged && !need_all(&staging, function)) return false;
  }
  receive_in_place(program);
  plan_schedule(program, staging.revisits);
  give_memory(program);
  if (is_sharded(program)) shard_all(program);
  if (is_sharded(program) && !plan_stage_gathers(program, diags)) return false;
  plan_stage_traffic(program);
  return true;
}
