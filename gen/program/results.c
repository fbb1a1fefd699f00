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
