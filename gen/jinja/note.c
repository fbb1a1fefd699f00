/* The compiler's first pass: which names does a scope's code read and write? */
#include "gen/jinja/note.h"

void jj_note_all(struct scope *s, const struct nodes *nodes) {
  for (int i = 0; i < nodes->count; i++) jj_note(s, nodes->items[i]);
}

static void note_target(struct scope *s, const struct node *target) {
  if (target->kind == N_NAME) {
    jj_scope_store(s, target->as.name.name);
  } else if (target->kind == N_NSREF) {
    jj_scope_load(s, target->as.nsref.object.name);
  } else {
    for (int i = 0; i < target->as.items.count; i++) note_target(s, target->as.items.items[i]);
  }
}

static void note_branches(struct scope *s, const struct node *node) {
  for (int i = 0; i < node->as.branch.tests.count; i++) {
    if (i > 0) s->conditional++;
    jj_note(s, node->as.branch.tests.items[i]);
    if (i > 0) s->conditional--;
    s->conditional++;
    jj_note_all(s, &node->as.branch.bodies[i]);
    s->conditional--;
  }
  s->conditional++;
  jj_note_all(s, &node->as.branch.else_body);
  s->conditional--;
}

static void note_operand(void *scope, struct node *operand) {
  jj_note(scope, operand);
}

static void note_expression(struct scope *s, const struct node *node) {
  if (node->kind == N_NAME) jj_scope_load(s, node->as.name.name);
  jj_each_operand(node, note_operand, s);
}

static void note_from(struct scope *s, const struct node *node) {
  jj_note(s, node->as.import->name);
  for (int i = 0; i < node->as.import->targets.count; i++) jj_scope_store(s, node->as.import->targets.items[i].name);
}

void jj_note(struct scope *s, const struct node *node) {
  if (node == NULL) return;
  switch (node->kind) {
  case N_OUTPUT:
  case N_DO:
  case N_EXTENDS:
    jj_note(s, node->as.expression);
    break;
  case N_IF:
    note_branches(s, node);
    break;
  case N_FOR:
    jj_note(s, node->as.loop->iterable);
    break;
  case N_SET:
    jj_note(s, node->as.set.value), note_target(s, node->as.set.target);
    break;
  case N_SET_BLOCK:
    note_target(s, node->as.set_block->target);
    break;
  case N_MACRO:
    jj_scope_store(s, node->as.macro.target.name);
    break;
  case N_CALL_BLOCK:
    if (node->as.call_block.call != NULL) jj_note(s, node->as.call_block.call);
    break;
  case N_FILTER_BLOCK:
    jj_note(s, node->as.filter_block.filter);
    break;
  case N_WITH:
    jj_note_all(s, &node->as.with->values);
    break;
  case N_INCLUDE:
    jj_note(s, node->as.include->name);
    break;
  case N_IMPORT:
    jj_note(s, node->as.import->name), jj_scope_store(s, node->as.import->target.name);
    break;
  case N_FROM:
    note_from(s, node);
    break;
  default:
    note_expression(s, node);
    break;
  }
}
