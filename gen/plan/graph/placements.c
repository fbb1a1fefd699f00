#include "gen/plan/graph/placements.h"

#include <stdlib.h>
#include <string.h>

#include "gen/ir/op.h"
#include "gen/ir/region.h"
#include "gen/plan/graph/weight_visitor.h"

struct placement placement_of(const struct placements *placements, const struct value *value) {
  return placements->values[value->id];
}

/* ---- Parameters of one name ---- */

struct named_value {
  const char *path;
  const struct value *value;
};
struct named_values {
  struct named_value *items;
  int count, capacity;
};

static void collect(struct weight_visitor *visitor, const struct region *region, const struct node *after,
                    const char *const *prefixes) {
  struct named_values *names = visitor->context;
  for (int i = 0; after == NULL && i < region->parameters.count; i++) {
    const struct parameter *p = &region->parameters.items[i];
    struct named_value name = {weight_path(visitor->program->arena, prefixes[p->scope], p->path), p->value};
    ARENA_PUSH(visitor->program->arena, *names, name);
  }
}

static int by_path(const void *a, const void *b) {
  const struct named_value *p = a, *q = b;
  int order = strcmp(p->path, q->path);
  return order != 0 ? order : p->value->id - q->value->id;
}

const struct value *first_of_name(const struct placements *placements, const struct value *value) {
  while (placements->tied[value->id] != value) value = placements->tied[value->id];
  return value;
}

static void tie(struct placements *placements) {
  struct program *program = placements->program;
  struct named_values names = {0};
  struct weight_visitor visitor = {.program = program, .ok = true, .visit = collect, .context = &names};
  weight_visit_from(&visitor, program->graph->entry);
  qsort(names.items, (size_t)names.count, sizeof *names.items, by_path);
  for (int r = 0; r < program->graph->n_regions; r++)
    for (int i = 0; i < program->graph->regions[r]->parameters.count; i++) {
      const struct value *value = program->graph->regions[r]->parameters.items[i].value;
      placements->tied[value->id] = value;
    }
  for (int i = 1; i < names.count; i++) {
    if (strcmp(names.items[i].path, names.items[i - 1].path) != 0) continue;
    const struct value *a = first_of_name(placements, names.items[i - 1].value);
    placements->tied[first_of_name(placements, names.items[i].value)->id] = a;
  }
}

/* ---- Trials ---- */

static bool set(struct placements *placements, const struct value *value, struct placement placement, bool *changed) {
  struct placement *known = &placements->values[value->id];
  if (placement_equal(*known, placement)) return true;
  if (known->form == PLACED_SPLIT || placements->stays_whole[value->id] ||
      (!placement_fits(placement, value->shape, placements->ranks) &&
       !placement_pads(placement, value->shape, placements->ranks)))
    return false;
  *known = placement;
  ARENA_PUSH(placements->program->arena, placements->trial, value->id);
  return *changed = true;
}

static void undo(struct placements *placements) {
  for (int i = 0; i < placements->trial.count; i++)
    placements->values[placements->trial.items[i]] = (struct placement){.form = PLACED_WHOLE};
}

/* Two values that are one tensor. */
static bool unify(struct placements *placements, const struct value *a, const struct value *b, bool *changed) {
  const struct placement first = placement_of(placements, a), second = placement_of(placements, b);
  if (first.form == PLACED_SPLIT) return set(placements, b, first, changed);
  return second.form != PLACED_SPLIT || set(placements, a, second, changed);
}

/* The first of a node's operands that is split; -1: none is. */
static int seed_of(const struct placements *placements, const struct node *node) {
  for (int i = 0; i <= node->n_inputs; i++)
    if (placement_of(placements, op_operand(node, i)).form == PLACED_SPLIT) return i;
  return -1;
}

bool node_placements(const struct placements *placements, const struct node *node, struct placement *operands) {
  int seed = seed_of(placements, node);
  if (seed < 0) return false;
  for (int i = 0; i <= node->n_inputs; i++) operands[i] = (struct placement){.form = PLACED_WHOLE};
  operands[seed] = placement_of(placements, op_operand(node, seed));
  return op_place(node, seed, placements->ranks, operands);
}

/* Whether an operand is whole where the node has parts of it, which ranks take of it or then gather. */
static bool converts(const struct placements *placements, const struct node *node, int operand) {
  return operand == node->n_inputs ? placements->gathers[node->id] : operand == 0 && placements->takes[node->id];
}

/* Splits what a node needs and gives; false where it disagrees with what is split already. */
static bool spread_node(struct placements *placements, const struct node *node, bool *changed) {
  if (seed_of(placements, node) < 0) return true;
  struct placement *operands = arena_alloc(placements->program->arena, ((size_t)node->n_inputs + 1) * sizeof *operands);
  if (!node_placements(placements, node, operands) || operands[node->n_inputs].form == PLACED_MEAN) return false;
  for (int i = 1; i < node->n_outputs && !node->kind->ranks.others_whole; i++)
    if (value_is_used(node->region, node->outputs[i], NULL)) return false;
  for (int i = 0; i <= node->n_inputs; i++) {
    const struct value *value = op_operand(node, i);
    if (converts(placements, node, i) && placement_fits(operands[i], value->shape, placements->ranks)) continue;
    if (operands[i].form == PLACED_SPLIT ? !set(placements, value, operands[i], changed)
                                         : placement_of(placements, value).form == PLACED_SPLIT)
      return false;
  }
  return true;
}

static bool spread_call(struct placements *placements, const struct node *node, bool *changed) {
  const struct call *call = node->call;
  bool good = true;
  for (int i = 0; i < node->n_inputs && good; i++) {
    const struct value *formal = call->callee->inputs.items[i];
    good = unify(placements, node->inputs[i], formal, changed);
    if (good && call->count > 1 && call->carry[i] >= 0)
      good = unify(placements, formal, call->callee->results.items[call->carry[i]], changed);
  }
  for (int i = 0; i < node->n_outputs && good; i++)
    good = unify(placements, node->outputs[i], call->callee->results.items[i], changed);
  return good;
}

/* The parameters of a name are one tensor, with its copy of 16 bits; no state that is no parameter is divided. */
static bool spread_parameters(struct placements *placements, const struct region *region, bool *changed) {
  bool good = true;
  for (int i = 0; i < region->parameters.count && good; i++) {
    const struct parameter *p = &region->parameters.items[i];
    good = unify(placements, p->value, first_of_name(placements, p->value), changed) &&
           (p->bits16 == NULL || unify(placements, p->value, p->bits16, changed)) &&
           (!p->buffer || placement_of(placements, p->value).form != PLACED_SPLIT);
  }
  return good;
}

/* What the entry takes and gives is whole; of a program that writes text, ranks gather the logits. */
static bool is_outside_whole(const struct placements *placements) {
  const struct region *entry = placements->program->graph->entry;
  bool gathers = placements->program->kind == PROGRAM_GENERATE;
  for (int i = 0; i < entry->inputs.count; i++)
    if (placement_of(placements, entry->inputs.items[i]).form == PLACED_SPLIT) return false;
  for (int i = 0; i < entry->results.count && !gathers; i++)
    if (placement_of(placements, entry->results.items[i]).form == PLACED_SPLIT) return false;
  return true;
}

static bool spread(struct placements *placements) {
  const struct graph *graph = placements->program->graph;
  for (bool changed = true; changed;) {
    changed = false;
    for (int r = 0; r < graph->n_regions; r++) {
      const struct region *region = graph->regions[r];
      if (!spread_parameters(placements, region, &changed)) return false;
      for (int i = 0; i < region->nodes.count; i++) {
        const struct node *node = region->nodes.items[i];
        if (node->call != NULL ? spread_call(placements, node, &changed) : spread_node(placements, node, &changed))
          continue;
        if (placements->needs == NULL && node->call == NULL) placements->needs = node;
        return false;
      }
    }
  }
  return is_outside_whole(placements);
}

/* ---- Which trials ---- */

/* A split that an operation asks ranks to try. */
struct candidate {
  const struct value *value;
  int dim, number;         /* in the order of the graph */
  const struct node *asks; /* NULL: none does */
};
struct candidates {
  struct candidate *items;
  int count, capacity;
};

static bool try_blocks(struct placements *placements, const struct value *value, int dim, int64_t blocks) {
  bool changed;
  placements->trial.count = 0;
  if (set(placements, value, placement_split(dim, blocks), &changed) && spread(placements)) {
    placements->n_split++;
    return true;
  }
  undo(placements);
  return false;
}

bool try_placement(struct placements *placements, const struct value *value, int dim, int64_t blocks) {
  for (int64_t i = 1; i <= blocks; i++)
    if (try_blocks(placements, value, dim, i)) return true;
  return false;
}

/* In one block, or in one for each rank that has a part of what it exchanges. */
static void try_split(struct placements *placements, struct candidate candidate) {
  if (placement_of(placements, candidate.value).form == PLACED_SPLIT) return;
  const struct node *first = placements->needs;
  placements->needs = NULL;
  if (!try_blocks(placements, candidate.value, candidate.dim, 1) &&
      (placements->others == 1 || !try_blocks(placements, candidate.value, candidate.dim, placements->others)) &&
      candidate.asks != NULL)
    placements->reasons[candidate.asks->id] = placements->needs;
  if (first != NULL) placements->needs = first;
}

/* For each element of the sum that ranks exchange, a rank saves as many multiplications as the matmul is deep. So that
 * of a low-rank adapter is not split where the matmul next to it can be. */
static int deepest_first(const void *a, const void *b) {
  const struct candidate *p = a, *q = b;
  int64_t first = p->value->shape.dim[p->dim], second = q->value->shape.dim[q->dim];
  if (first != second) return first > second ? -1 : 1;
  return p->number - q->number;
}

/* Logits, of which ranks have some columns each. */
static void add_logits(const struct program *program, struct candidates *list) {
  const struct value *logits = program->graph->entry->results.items[0];
  if (program->kind != PROGRAM_GENERATE || logits->shape.rank == 0) return;
  struct candidate candidate = {logits, logits->shape.rank - 1, list->count, NULL};
  ARENA_PUSH(program->arena, *list, candidate);
}

static struct candidates candidates_of(const struct program *program) {
  const struct graph *graph = program->graph;
  struct candidates list = {0};
  add_logits(program, &list);
  for (int r = 0; r < graph->n_regions; r++)
    for (int i = 0; i < graph->regions[r]->nodes.count; i++) {
      const struct node *node = graph->regions[r]->nodes.items[i];
      int input, dim;
      if (node->kind->ranks.tried == NULL || !node->kind->ranks.tried(node, &input, &dim)) continue;
      struct candidate candidate = {node->inputs[input], dim, list.count, node};
      ARENA_PUSH(program->arena, list, candidate);
    }
  qsort(list.items, (size_t)list.count, sizeof *list.items, deepest_first);
  return list;
}

void open_placements(struct placements *placements, struct program *program, int64_t ranks, int64_t others) {
  const struct graph *graph = program->graph;
  size_t count = (size_t)graph->next_value + 1;
  *placements = (struct placements){.program = program, .ranks = ranks, .others = others};
  placements->values = arena_alloc(program->arena, count * sizeof *placements->values);
  placements->tied = arena_alloc(program->arena, count * sizeof *placements->tied);
  placements->stays_whole = arena_alloc(program->arena, count * sizeof *placements->stays_whole);
  placements->gathers = arena_alloc(program->arena, ((size_t)graph->next_node + 1) * sizeof *placements->gathers);
  placements->reasons = arena_alloc(program->arena, ((size_t)graph->next_node + 1) * sizeof *placements->reasons);
  placements->takes = arena_alloc(program->arena, ((size_t)graph->next_node + 1) * sizeof *placements->takes);
  tie(placements);
}

void find_placements(struct placements *placements) {
  const struct candidates candidates = candidates_of(placements->program);
  for (int i = 0; i < candidates.count; i++) try_split(placements, candidates.items[i]);
}
