#include "gen/plan/memory/layout.h"

#include "gen/ir/op.h"
#include "gen/plan/graph/uses.h"
#include "gen/plan/memory/deferred.h"
#include "gen/plan/memory/direct.h"
#include "gen/plan/memory/lower.h"

struct function *function_of(const struct program *program, const struct region *region) {
  for (int i = 0; i < program->functions.count; i++)
    if (program->functions.items[i]->region == region) return program->functions.items[i];
  return NULL;
}

static void lay_out_operands(struct layout_pass *pass) {
  struct region *region = pass->region;
  for (int i = 0; i < region->inputs.count; i++) {
    const struct value *value = region->inputs.items[i];
    *view_of(pass->program, value) = dense_view(operand_storage(pass, STORAGE_INPUT, value, i), 0, value->shape);
  }
  for (int i = 0; i < region->parameters.count; i++) {
    const struct value *operands[] = {region->parameters.items[i].value, region->parameters.items[i].bits16};
    for (int k = 0; k < 2 && operands[k] != NULL; k++) {
      struct storage *storage = operand_storage(pass, STORAGE_WEIGHT, operands[k], i);
      *view_of(pass->program, operands[k]) = dense_view(storage, 0, operands[k]->shape);
    }
  }
}

static struct function *new_function(struct program *program, struct region *region) {
  struct function *function = arena_alloc(program->arena, sizeof *function);
  function->region = region;
  if (region->forward != NULL) {
    function->forward = function_of(program, region->forward);
    function->forward->backward = function;
  }
  const char *base = region->forward != NULL ? region->forward->name : region->name;
  function->name = arena_printf(program->arena, "%s_%s", base, region->forward != NULL ? "backward" : "forward");
  program->functions.items = arena_grow(program->arena, program->functions.items, program->functions.count,
                                        &program->functions.capacity, sizeof *program->functions.items);
  program->functions.items[program->functions.count++] = function;
  return function;
}

/* What backward regions use of their forward regions. */
static void mark_saved(struct layout_pass *pass) {
  const struct graph *graph = pass->program->graph;
  for (int r = 0; r < graph->n_regions; r++) {
    const struct region *region = graph->regions[r];
    for (int i = 0; i < region->nodes.count; i++) {
      const struct node *node = region->nodes.items[i];
      for (int k = 0; k < node->n_inputs; k++)
        if (node->inputs[k]->region == region->forward && node->inputs[k]->kind == VALUE_RESULT)
          pass->saved[node->inputs[k]->id] = true;
    }
  }
}

void layout(struct program *program) {
  struct graph *graph = program->graph;
  struct layout_pass pass = {.program = program, .arena = program->arena, .n_values = graph->next_value};
  pass.uses = count_uses(program->arena, graph);
  pass.saved = arena_alloc(program->arena, ((size_t)pass.n_values + 1) * sizeof(bool));
  pass.accumulate = arena_alloc(program->arena, ((size_t)pass.n_values + 1) * sizeof(bool));
  mark_saved(&pass);
  for (int r = 0; r < graph->n_regions; r++) {
    pass.region = graph->regions[r];
    pass.function = new_function(program, pass.region);
    lay_out_operands(&pass);
    direct_values(&pass);
    lower_nodes(&pass);
    split_deferred(&pass);
  }
}
