/* Statements other than loops. */
#include "gen/audit/walk.h"

static enum flow walk_block(struct walk *walk, struct syntax *node) {
  for (int i = 0; i < node->n_parts; i++) {
    enum flow flow = walk_statement(walk, node->parts[i]);
    if (flow != FLOW_NEXT) return flow;
  }
  return FLOW_NEXT;
}

static void declare(struct walk *walk, struct variable *variable) {
  if (variable->lasting) return;
  for (int i = 0; i < variable->n_sizes; i++) walk_evaluate(walk, variable->sizes[i]);
  int object = walk_variable(walk, variable);
  walk->objects[object] = (struct object){.kind = OBJECT_LOCAL,
                                          .name = variable->name,
                                          .variable = variable,
                                          .type = variable->type,
                                          .size = variable->type->size};
  walk->states[object] = (struct state){0};
  if (variable->initial == NULL) return;
  struct value value = walk_evaluate(walk, variable->initial);
  bool aggregate = variable->type->kind == TYPE_ARRAY || variable->type->kind == TYPE_RECORD;
  if (aggregate) {
    walk->states[object].written = ranges_add(walk->memory, NULL, 0, variable->type->size);
    walk->states[object].value = value_number(value.origin);
    walk->states[object].value.fields = value.kind == VALUE_NUMBER ? value.fields : NULL;
    walk->states[object].content = walk_integers(value);
    return;
  }
  walk_store(walk, (struct place){walk_address(walk, object), variable->type}, value, variable->initial);
}

/* One arm of a choice, under what its condition says. */
static enum flow walk_arm(struct walk *walk, struct syntax *node, bool truth) {
  if (!walk_assume(walk, node->parts[0], truth)) return FLOW_NEVER;
  struct syntax *arm = node->parts[truth ? 1 : 2];
  return arm == NULL ? FLOW_NEXT : walk_statement(walk, arm);
}

static enum flow walk_if(struct walk *walk, struct syntax *node) {
  struct value condition = walk_evaluate(walk, node->parts[0]);
  walk_note_choice(walk, node, condition);
  int truth = value_truth(condition);
  if (truth >= 0) {
    struct syntax *arm = node->parts[truth ? 1 : 2];
    return arm == NULL ? FLOW_NEXT : walk_statement(walk, arm);
  }
  int count = walk->n_objects;
  struct state *before = walk_save(walk);
  uint64_t guards = walk->guards;
  walk->guards |= walk_guard(condition);
  enum flow yes = walk_arm(walk, node, true);
  struct state *after = walk_save(walk);
  walk_restore(walk, before, count);
  enum flow no = walk_arm(walk, node, false);
  walk->guards = guards;
  if (yes == FLOW_NEXT && no == FLOW_NEXT) walk_merge(walk, after, count, condition);
  if (yes != FLOW_NEXT || no != FLOW_NEXT) walk->frame->chosen |= origin_of_choice(condition.origin);
  if (yes == FLOW_NEXT && no != FLOW_NEXT) walk_restore(walk, after, count);
  if ((yes == FLOW_NEXT) != (no == FLOW_NEXT)) walk->guards |= walk_guard(condition); /* the rest is for some alone */
  walk_drop(walk, after);
  walk_drop(walk, before);
  if (yes == FLOW_NEXT || no == FLOW_NEXT) return FLOW_NEXT;
  return no == FLOW_NEVER ? yes : no;
}

/* Each label of a switch in turn, from the same state, on to the break behind it; then everything that may have been. A
 * label that stands deeper than in the switch's block is passed as its statement is. */
static enum flow walk_switch(struct walk *walk, struct syntax *node) {
  struct value value = walk_evaluate(walk, node->parts[0]);
  walk_note_choice(walk, node, value);
  struct syntax *block = node->parts[node->n_parts - 1];
  int count = walk->n_objects;
  struct state *before = walk_save(walk), *after = walk_save(walk);
  uint64_t guards = walk->guards;
  walk->guards |= walk_guard(value);
  walk->frame->chosen |= origin_of_choice(value.origin);
  for (int i = 0; i < block->n_parts; i++) {
    if (block->parts[i]->kind != SYNTAX_CASE && block->parts[i]->kind != SYNTAX_DEFAULT) continue;
    walk_restore(walk, before, count);
    enum flow flow = FLOW_NEXT;
    for (int j = i; j < block->n_parts && flow == FLOW_NEXT; j++) flow = walk_statement(walk, block->parts[j]);
    if (flow == FLOW_RETURN || flow == FLOW_CONTINUE) continue;
    walk_merge(walk, after, count, value);
    walk_drop(walk, after);
    after = walk_save(walk);
  }
  walk_restore(walk, after, count);
  walk->guards = guards;
  walk_drop(walk, after);
  walk_drop(walk, before);
  return FLOW_NEXT;
}

static enum flow walk_return(struct walk *walk, struct syntax *node) {
  struct frame *frame = walk->frame;
  struct value value = node->n_parts > 0 ? walk_evaluate(walk, node->parts[0]) : value_number(0);
  frame->result = frame->returned ? value_join(frame->result, value) : value;
  frame->returned = true;
  return FLOW_RETURN;
}

enum flow walk_statement(struct walk *walk, struct syntax *node) {
  if (walk->steps++ >= WALK_MOST_STEPS) return FLOW_NEXT;
  switch (node->kind) {
  case SYNTAX_BLOCK:
    return walk_block(walk, node);
  case SYNTAX_DECLARE:
    declare(walk, node->variable);
    return FLOW_NEXT;
  case SYNTAX_IF:
    return walk_if(walk, node);
  case SYNTAX_FOR:
  case SYNTAX_WHILE:
  case SYNTAX_DO:
    return walk_loop(walk, node);
  case SYNTAX_RETURN:
    return walk_return(walk, node);
  case SYNTAX_BREAK:
    return FLOW_BREAK;
  case SYNTAX_CONTINUE:
    return FLOW_CONTINUE;
  case SYNTAX_EMPTY:
    return FLOW_NEXT;
  case SYNTAX_GOTO:
    walk_lose(walk, node, "where this goto leads");
    return FLOW_NEXT;
  case SYNTAX_ASSEMBLER:
    walk_lose(walk, node, "assembler");
    return FLOW_NEXT;
  case SYNTAX_SWITCH:
    return walk_switch(walk, node);
  case SYNTAX_CASE:
  case SYNTAX_DEFAULT:
  case SYNTAX_LABEL:
    return node->n_parts == 0 ? FLOW_NEXT : walk_statement(walk, node->parts[node->n_parts - 1]);
  default:
    walk_evaluate(walk, node);
    return FLOW_NEXT;
  }
}
