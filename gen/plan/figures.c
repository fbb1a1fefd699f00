#include "gen/plan/figures.h"

#include <string.h>

#include "gen/ir/op.h"
#include "gen/plan/at_once.h"
#include "gen/plan/border.h"
#include "gen/plan/compress.h"
#include "gen/plan/optimizers.h"
#include "gen/plan/place.h"
#include "gen/plan/shard.h"
#include "gen/plan/state.h"
#include "gen/plan/target.h"

double function_own_flops(const struct function *function, bool products) {
  double flops = 0;
  for (int s = 0; s < function->n_steps; s++) {
    const struct step *step = &function->steps[s];
    if (step->callee == NULL) flops += products ? op_product_flops(step->node) : op_flops(step->node);
  }
  return flops;
}

/* All operations of one run of a function, or only its products of matrices. */
static double function_flops(const struct function *function, bool products) {
  double flops = function_own_flops(function, products);
  for (int s = 0; s < function->n_steps; s++) {
    const struct step *step = &function->steps[s];
    if (step->callee != NULL) flops += step->node->call->count * function_flops(step->callee, products);
  }
  return flops;
}

static void count_flops(struct program *program) {
  double times = program->kind == PROGRAM_TRAIN ? program->job->accumulation.num_steps : 1;
  for (int products = 0; products < 2; products++) {
    bool writes = program->kind == PROGRAM_GENERATE && program->second != NULL; /* a token a step */
    double flops = times * function_flops(writes ? program->second : program->forward, products);
    if (program->backward != NULL) flops += times * function_flops(program->backward, products);
    if (products)
      program->product_flops_per_step = flops;
    else
      program->flops_per_step = flops;
  }
}

/* Whether a device that makes the keys of random numbers itself must know the micro-batch at hand. */
static bool draws(const struct program *program) {
  return program->forward->random || (program->backward != NULL && program->backward->random) ||
         (program->second != NULL && program->second->random);
}

static int64_t workspace_of(const struct program *program) {
  int64_t bytes = program->target->workspace_bytes;
  for (int i = 0; i < program->n_kernels && bytes > 0; i++) {
    const struct node *node = program->kernels[i]->node;
    int64_t room = node->kind->library_room != NULL ? arena_aligned(node->kind->library_room(node)) : 0;
    if (room > bytes) bytes = room;
  }
  return bytes;
}

/* Of a device that gives logits to a host that chooses tokens: which place is the newest, and what is behind it. */
static int64_t newest_bytes(const struct region *entry) {
  struct shape logits = entry->results.items[0]->shape;
  int64_t columns = logits.rank > 0 ? logits.dim[logits.rank - 1] : 1;
  return arena_aligned(dtype_size(DTYPE_INT32)) + arena_aligned(columns * dtype_size(DTYPE_FLOAT32));
}

static void count_bytes(struct program *program) {
  const struct region *entry = program->graph->entry;
  int64_t weights = program->structs[program->n_structs - 1]->bytes;
  for (int i = 0; i < program->n_weights; i++)
    if (program->weights[i].parameter->passing)
      program->bytes.cache +=
          arena_aligned(shape_count(program->weights[i].parameter->shape) * dtype_size(DTYPE_FLOAT32));
  program->bytes.weights =
      weights - program->bytes.cache + (program->low != DTYPE_FLOAT32 ? arena_aligned(weights / 2) : 0) + program->packed;
  if (program->kind == PROGRAM_TRAIN)
    program->bytes.gradients = program->trained->structs[program->trained->n_structs - 1]->bytes;
  const struct job *job = program->job;
  int64_t own = program->own_elements * dtype_size(DTYPE_FLOAT32);
  if (shard_has_own_gradients(program)) program->bytes.gradients += own;
  if (shard_arrives_apart(program)) program->bytes.gradients += own;
  bool parts = program->kind == PROGRAM_TRAIN && job->parallelism.zero_stage == 3;
  if (parts && !program->states.items[0].on_host) program->bytes.weights += own;
  for (int i = 0; i < program->states.count; i++) {
    const struct state *state = &program->states.items[i];
    if (state->on_host)
      program->bytes.host += state_bytes(state);
    else if (i > 0)
      program->bytes.optimizer += state_bytes(state);
  }
  if (program->kind == PROGRAM_TRAIN && program->job->training.ema.decay > 0) program->bytes.averages = weights;
  program->bytes.optimizer -= program->bytes.averages;
  const struct target *target = program->target;
  bool mirrored = target->progress_bytes > 0; /* the host has the copy that checkpoints are written from */
  program->bytes.checkpoint = mirrored ? 0 : state_copy_bytes(program);
  for (int i = 0; i < entry->inputs.count; i++)
    program->bytes.batch +=
        arena_aligned(shape_count(entry->inputs.items[i]->shape) * dtype_size(entry->inputs.items[i]->dtype));
  if (job_optimizer(program->job)->in_backward && program->kind == PROGRAM_TRAIN)
    program->bytes.batch += arena_aligned((int64_t)sizeof(double));
  program->bytes.batch += arena_aligned(program->wire * dtype_size(DTYPE_BFLOAT16));
  program->bytes.batch += compression_bytes(program);
  program->bytes.batch += arena_aligned(program->tree.room * dtype_size(DTYPE_FLOAT32));
  program->bytes.batch += arena_aligned(program->tree.losses * (int64_t)sizeof(double));
  if (border_seed(program).input != NULL) program->bytes.batch += arena_aligned(dtype_size(DTYPE_FLOAT32));
  const struct value_list results = step_results(program);
  for (int i = 0; i < results.count; i++)
    program->bytes.batch += arena_aligned(shape_count(results.items[i]->shape) * dtype_size(DTYPE_FLOAT32));
  if (program->predictions.values != NULL && program->second_entry != NULL)
    program->bytes.batch += arena_aligned(shape_count(program->predictions.values->shape) * dtype_size(DTYPE_INT32));
  if (program->evaluation_count != NULL && program->second_entry != NULL && !program->border.counts)
    program->bytes.batch += arena_aligned(dtype_size(DTYPE_FLOAT32));
  program->bytes.activations = program->forward->saved_bytes;
  program->bytes.scratch = program->forward->scratch_bytes;
  if (program->backward != NULL && program->backward->scratch_bytes > program->bytes.scratch)
    program->bytes.scratch = program->backward->scratch_bytes;
  if (program->second != NULL && program->second->scratch_bytes > program->bytes.scratch)
    program->bytes.scratch = program->second->scratch_bytes;
  if (program->update_scratch > program->bytes.scratch) program->bytes.scratch = program->update_scratch;
  program->workspace = workspace_of(program);
  program->bytes.scratch += program->workspace + target->sums * dtype_size(DTYPE_FLOAT32);
  if (program->kind == PROGRAM_TRAIN) program->bytes.batch += target->progress_bytes;
  if (mirrored && program->kind == PROGRAM_GENERATE) program->bytes.batch += newest_bytes(entry);
  if (mirrored && draws(program)) program->bytes.batch += arena_aligned((int64_t)sizeof(uint64_t));
  if (mirrored && program->border.joins) program->bytes.batch += arena_aligned(dtype_size(DTYPE_FLOAT32));
  program->bytes.total = program->bytes.weights + program->bytes.cache + program->bytes.gradients +
                         program->bytes.optimizer + program->bytes.averages + program->bytes.checkpoint +
                         program->bytes.activations + program->bytes.scratch + program->bytes.batch;
}

static int64_t smaller_limit(int64_t a, int64_t b) {
  return a == 0 || (b != 0 && b < a) ? b : a;
}

/* What every element of an integer value must stay below, by all its uses; 0: nothing asks. */
static int64_t limit_of(const struct region *region, const struct value *value) {
  int64_t limit = 0;
  for (int i = 0; i < region->nodes.count; i++) {
    const struct node *node = region->nodes.items[i];
    for (int k = 0; k < node->n_inputs; k++) {
      if (node->inputs[k] != value) continue;
      if (node->call != NULL)
        limit = smaller_limit(limit, limit_of(node->call->callee, node->call->callee->inputs.items[k]));
      else if (node->kind->index_limit != NULL)
        limit = smaller_limit(limit, node->kind->index_limit(node, k));
      else if (node->kind->class == OP_VIEW)
        limit = smaller_limit(limit, limit_of(region, node->outputs[0]));
    }
  }
  return limit;
}

/* Places in a window are numbers below its length, and no tokens. */
static bool is_place(const struct value *input) {
  return strcmp(input->name, "starts") == 0 || strcmp(input->name, "positions") == 0;
}

/* The least number that a lookup by places asks them to be below; 0: none does. */
static int64_t positions_limit(const struct region *entry) {
  int64_t limit = 0;
  for (int i = 0; i < entry->inputs.count; i++)
    if (is_place(entry->inputs.items[i])) limit = smaller_limit(limit, limit_of(entry, entry->inputs.items[i]));
  return limit;
}

/* Tokens and targets share the data's vocabulary; the label of a table is a class. */
static void find_limits(struct program *program) {
  const struct region *entry = program->graph->entry;
  int64_t limit = 0;
  for (int i = 0; i < entry->inputs.count; i++)
    if (entry->inputs.items[i]->dtype == DTYPE_INT32 && !is_place(entry->inputs.items[i]))
      limit = smaller_limit(limit, limit_of(entry, entry->inputs.items[i]));
  program->positions = positions_limit(entry);
  if (job_has_rows(program->job))
    program->classes = limit;
  else
    program->vocabulary = limit;
}

void count_figures(struct program *program) {
  find_limits(program);
  program->n_parameters = 0;
  for (int i = 0; i < program->n_weights; i++) {
    if (!program->weights[i].parameter->buffer)
      program->n_parameters += shape_count(program->weights[i].parameter->shape);
    program->n_tied += program->weights[i].tied;
  }
  count_flops(program);
  count_bytes(program);
}
