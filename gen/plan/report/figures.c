#include "gen/plan/report/figures.h"

#include <string.h>

#include "gen/ir/op.h"
#include "gen/ir/region.h"
#include "gen/plan/report/bytes.h"
#include "gen/program/target.h"

double function_own_flops(const struct function *function, bool matmuls) {
  double flops = 0;
  for (int s = 0; s < function->n_steps; s++) {
    const struct step *step = &function->steps[s];
    if (step->callee == NULL) flops += matmuls ? op_matmul_flops(step->node) : op_flops(step->node);
  }
  return flops;
}

/* All operations of one run of a function, or only its matmuls. */
static double function_flops(const struct function *function, bool matmuls) {
  double flops = function_own_flops(function, matmuls);
  for (int s = 0; s < function->n_steps; s++) {
    const struct step *step = &function->steps[s];
    if (step->callee != NULL) flops += step->node->call->count * function_flops(step->callee, matmuls);
  }
  return flops;
}

/* The same of a region, where no functions were made of regions. */
static double region_flops(const struct region *region, bool matmuls) {
  double flops = 0;
  for (int i = 0; region != NULL && i < region->nodes.count; i++) {
    const struct node *node = region->nodes.items[i];
    if (node->call != NULL)
      flops += node->call->count * region_flops(node->call->callee, matmuls);
    else
      flops += matmuls ? op_matmul_flops(node) : op_flops(node);
  }
  return flops;
}

/* Of a program whose kernels are another compiler's. */
static void count_flops_of_graph(struct program *program) {
  const double times = program->kind == PROGRAM_TRAIN ? program->job->accumulation.num_steps : 1;
  const struct region *entry = program->graph->entry, *backward = graph_backward_of(program->graph, entry);
  struct program_figures *figures = &program->figures;
  figures->flops_per_step = times * (region_flops(entry, false) + region_flops(backward, false));
  figures->matmul_flops_per_step = times * (region_flops(entry, true) + region_flops(backward, true));
}

static void count_flops(struct program *program) {
  double times = program->kind == PROGRAM_TRAIN ? program->job->accumulation.num_steps : 1;
  for (int matmuls = 0; matmuls < 2; matmuls++) {
    bool writes = program->kind == PROGRAM_GENERATE && program->entry.second != NULL; /* a token a step */
    double flops = times * function_flops(writes ? program->entry.second : program->entry.forward, matmuls);
    if (program->entry.backward != NULL) flops += times * function_flops(program->entry.backward, matmuls);
    if (program->entry.deferred != NULL) flops += times * function_flops(program->entry.deferred, matmuls);
    if (matmuls)
      program->figures.matmul_flops_per_step = flops;
    else
      program->figures.flops_per_step = flops;
  }
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
      else if (node->kind->index.limit != NULL)
        limit = smaller_limit(limit, node->kind->index.limit(node, k));
      else if (node->kind->class == OP_VIEW || node->kind->index.moves)
        limit = smaller_limit(limit, limit_of(region, node->outputs[0]));
    }
  }
  return limit;
}

/* Positions in a window are numbers below its length, and no tokens. */
static bool is_position(const struct value *input) {
  return strcmp(input->name, "starts") == 0 || strcmp(input->name, "positions") == 0;
}

/* The least number that a lookup by positions asks them to be below; 0: none does. */
static int64_t positions_limit(const struct region *entry) {
  int64_t limit = 0;
  for (int i = 0; i < entry->inputs.count; i++)
    if (is_position(entry->inputs.items[i])) limit = smaller_limit(limit, limit_of(entry, entry->inputs.items[i]));
  return limit;
}

/* Of each input of rows, by the job's order. */
static void find_limits_of_inputs(struct program *program) {
  const struct region *entry = program->graph->entry;
  const struct job *job = program->job;
  for (int k = 0; k < job->data.n_inputs; k++) {
    const struct data_input *input = &job->data.inputs[k];
    int64_t limit = input->below;
    for (int i = 0; i < entry->inputs.count; i++)
      if (entry->inputs.items[i]->dtype == DTYPE_INT32 && strcmp(entry->inputs.items[i]->name, input->name) == 0)
        limit = smaller_limit(limit, limit_of(entry, entry->inputs.items[i]));
    /* A class of a table is a float32 in other programs that read it. */
    if (limit == 0 && input->is_integer && !job->data.names_inputs) limit = (INT64_C(1) << 24) + 1;
    program->data.inputs[k].below = limit;
  }
}

/* Tokens and targets share the data's vocabulary; what writes the labels of rows reads no data, but tokens. */
static void find_limits(struct program *program) {
  const struct region *entry = program->graph->entry;
  int64_t limit = 0;
  if (job_has_rows(program->job) && program->kind != PROGRAM_GENERATE) {
    find_limits_of_inputs(program);
    return;
  }
  for (int i = 0; i < entry->inputs.count; i++)
    if (entry->inputs.items[i]->dtype == DTYPE_INT32 && !is_position(entry->inputs.items[i]))
      limit = smaller_limit(limit, limit_of(entry, entry->inputs.items[i]));
  program->data.positions = positions_limit(entry);
  program->data.vocabulary = limit;
}

/* Elements of the last rank's part that are beyond the whole. */
static int64_t padding_of(const struct parameter *parameter) {
  const struct placement placement = parameter->placement;
  if (placement.padding == 0) return 0;
  return placement.padding * (shape_count(parameter->shape) / parameter->shape.dim[placement.dim]);
}

static void count_parameters(struct program *program) {
  struct program_figures *figures = &program->figures;
  for (int i = 0; i < program->weights->count; i++) {
    const struct weight *weight = &program->weights->items[i];
    enum placement_form form = weight->parameter->placement.form;
    int64_t ranks = form == PLACED_WHOLE ? 1 : ranks_along(program, (enum axis)weight->parameter->axis);
    int64_t own = shape_count(weight->parameter->shape);
    figures->n_tied += weight->tied;
    if (weight->parameter->buffer) continue;
    figures->n_split += ranks > 1;
    figures->n_expert_weights += form == PLACED_EXPERT;
    figures->own_elements += own;
    figures->n_parameters += own * ranks - padding_of(weight->parameter);
  }
  for (int i = 0; i < program->quantized.count; i++) {
    const int64_t count = program->quantized.items[i].out * program->quantized.items[i].in;
    figures->own_elements += count;
    figures->n_parameters += count;
    if (program->kind == PROGRAM_TRAIN) figures->n_frozen += count;
  }
}

void count_figures(struct program *program) {
  find_limits(program);
  count_parameters(program);
  if (program->target->module != NULL)
    count_flops_of_graph(program);
  else
    count_flops(program);
  count_bytes(program);
}
