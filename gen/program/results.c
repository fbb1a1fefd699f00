#include "gen/program/results.h"

#include "gen/ir/region.h"

struct value_list step_results(const struct program *program) {
  struct value_list list = {0};
  const struct value_list *forward = &program->graph->entry->results;
  for (int i = 0; i < forward->count; i++) ARENA_PUSH(program->arena, list, forward->items[i]);
  const struct region *backward = graph_backward_of(program->graph, program->graph->entry);
  for (int i = 0; program->entry.loss_in_backward && i < backward->results.count; i++)
    ARENA_PUSH(program->arena, list, backward->results.items[i]);
  return list;
}

struct shape largest_input(const struct program *program, int index) {
  const struct region *second = program->kind == PROGRAM_TRAIN ? program->entry.second_region : NULL;
  const struct shape trained = program->graph->entry->inputs.items[index]->shape;
  const struct shape evaluated = second != NULL ? second->inputs.items[index]->shape : trained;
  return shape_count(evaluated) > shape_count(trained) ? evaluated : trained;
}

bool evaluation_reuses_saved(const struct program *program) {
  const struct function *second = program->entry.second;
  return program->kind == PROGRAM_TRAIN && job_evaluates_other_batches(program->job) && second != NULL &&
         second->scratch_bytes > 0 && program->entry.forward->saved_bytes > 0 && program->ranks.pipeline.stages == 0;
}
