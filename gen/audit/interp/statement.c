/* Statements other than loops. */
#include <string.h>

#include "gen/audit/interp/region.h"

static enum flow interp_block(struct interp *interp, struct syntax *node) {
  for (int i = 0; i < node->n_parts; i++) {
    enum flow flow = interp_statement(interp, node->parts[i]);
    if (flow != FLOW_NEXT) return flow;
  }
  if (node->note != NULL && node->note->barrier_at_end) interp_region_barrier(interp, node);
  return FLOW_NEXT;
}

static void declare(struct interp *interp, struct variable *variable) {
  if (variable->is_static) return;
  for (int i = 0; i < variable->n_sizes; i++) interp_evaluate(interp, variable->sizes[i]);
  int object = interp_variable(interp, variable);
  interp->objects[object] = (struct object){.kind = OBJECT_LOCAL,
                                            .name = variable->name,
                                            .variable = variable,
                                            .type = variable->type,
                                            .size = variable->type->size,
                                            .region = interp_region_number(interp)};
  interp->states[object] = (struct state){0};
  if (variable->initial == NULL) return;
  struct value value = interp_evaluate(interp, variable->initial);
  bool aggregate = variable->type->kind == TYPE_ARRAY || variable->type->kind == TYPE_RECORD;
  if (aggregate) {
    interp->states[object].written = interp_all_bytes(interp, variable->type->size);
    interp->states[object].value = value_number(value.origin);
    interp->states[object].value.fields = value.kind == VALUE_NUMBER ? value.fields : NULL;
    interp->states[object].content = interp_integers(value);
    return;
  }
  interp_store(interp, (struct lvalue){interp_address(interp, object), variable->type}, value, variable->initial);
}

/* One arm of a choice {condition, yes, no}, under what its condition says. */
static enum flow interp_arm(struct interp *interp, struct syntax *const *parts, bool truth) {
  if (!interp_assume(interp, parts[0], truth)) return FLOW_UNREACHABLE;
  struct syntax *arm = parts[truth ? 1 : 2];
  const int before = truth ? interp_grid_assume(interp, parts[0]) : -1;
  const enum flow flow = arm == NULL ? FLOW_NEXT : interp_statement(interp, arm);
  interp_grid_forget(interp, before);
  return flow;
}

/* The integers of the arena that are known here, where arms may set them: kernels do so at the end of a launch. */
static struct map_contents copy_integers(struct interp *interp, bool on_device) {
  return on_device ? (struct map_contents){0} : map_copy_contents(interp->memory, &interp->map);
}

static enum flow interp_choice(struct interp *interp, struct syntax *const *parts, struct value condition) {
  int truth = value_truth(condition);
  if (truth >= 0) {
    struct syntax *arm = parts[truth ? 1 : 2];
    return arm == NULL ? FLOW_NEXT : interp_statement(interp, arm);
  }
  int count = interp->n_objects;
  struct state *before = interp_save(interp);
  uint64_t guards = interp->guards;
  interp->guards |= interp_guard(condition);
  const bool on_device = interp->kernel_base > 0 || interp->in_kernel;
  const int doubts = on_device && condition.loops == 0; /* else some threads take this arm, others that one */
  if (!on_device) interp_record_choice(interp);
  const struct map_contents integers = copy_integers(interp, on_device);
  interp->doubts += doubts;
  if (interp->region != NULL) interp->region->grid.arms++;
  enum flow yes = interp_arm(interp, parts, true);
  interp_leave(interp, yes);
  struct state *after = interp_save(interp);
  const struct map_contents of_yes = copy_integers(interp, on_device);
  if (!on_device) map_take_contents(interp->memory, &interp->map, integers);
  interp_restore(interp, before, count);
  enum flow no = interp_arm(interp, parts, false);
  interp_leave(interp, no);
  if (!on_device && no == FLOW_UNREACHABLE) map_take_contents(interp->memory, &interp->map, of_yes);
  if (!on_device && no != FLOW_UNREACHABLE && yes != FLOW_UNREACHABLE) map_join_contents(&interp->map, of_yes);
  interp->doubts -= doubts;
  if (interp->region != NULL) interp->region->grid.arms--;
  interp->guards = guards;
  if (yes == FLOW_NEXT && no == FLOW_NEXT) interp_join(interp, after, count, condition);
  if (yes != FLOW_NEXT || no != FLOW_NEXT) interp->frame->chosen |= origin_of_choice(condition.origin);
  if (yes == FLOW_NEXT && no != FLOW_NEXT) interp_restore(interp, after, count);
  if ((yes == FLOW_NEXT) != (no == FLOW_NEXT))
    interp->guards |= interp_guard(condition); /* the rest is for some alone */
  interp_drop(interp, after);
  interp_drop(interp, before);
  if (yes == FLOW_NEXT || no == FLOW_NEXT) return FLOW_NEXT;
  return no == FLOW_UNREACHABLE ? yes : no;
}

static enum flow interp_if(struct interp *interp, struct syntax *node) {
  struct value condition = interp_evaluate(interp, node->parts[0]);
  interp_note_choice(interp, node, condition);
  return interp_choice(interp, node->parts, condition);
}

static bool is_recorded(const struct type *type) {
  return type->kind == TYPE_POINTER && strcmp(type->element->name, "struct accel_graph") == 0;
}

/* The first argument of a call that is one of two addresses of recorded work; 0: there is none. Other memory
 * is not followed in this way: after two calls that join, less is known of it than after one. */
static int chosen_argument(const struct syntax *call) {
  for (int i = 1; call->kind == SYNTAX_CALL && i < call->n_parts; i++)
    if (syntax_bare(call->parts[i])->kind == SYNTAX_SELECT && is_recorded(call->parts[i]->type)) return i;
  return 0;
}

static struct syntax *call_with(struct interp *interp, const struct syntax *call, int which, struct syntax *argument) {
  struct syntax *copy = arena_alloc(interp->memory, sizeof *copy);
  *copy = *call;
  copy->parts = arena_alloc(interp->memory, (size_t)call->n_parts * sizeof(struct syntax *));
  for (int i = 0; i < call->n_parts; i++) copy->parts[i] = i == which ? argument : call->parts[i];
  return copy;
}

/* f(c ? a : b) as a statement does what if (c) f(a); else f(b); does. What two addresses have in common is too little
 * to follow either of them. */
static enum flow interp_chosen_call(struct interp *interp, struct syntax *call, int which) {
  struct syntax *select = syntax_bare(call->parts[which]);
  struct value condition = interp_evaluate(interp, select->parts[0]);
  interp_note_choice(interp, select, condition);
  struct syntax *parts[] = {select->parts[0], call_with(interp, call, which, select->parts[1]),
                            call_with(interp, call, which, select->parts[2])};
  return interp_choice(interp, parts, condition);
}

/* Each label of a switch in turn, from the same state, on to the break after it; then everything that may have been. A
 * label that is nested deeper than the switch's block is passed with its statement. */
static enum flow interp_switch(struct interp *interp, struct syntax *node) {
  struct value value = interp_evaluate(interp, node->parts[0]);
  interp_note_choice(interp, node, value);
  struct syntax *block = node->parts[node->n_parts - 1];
  int count = interp->n_objects;
  struct state *before = interp_save(interp), *after = interp_save(interp);
  uint64_t guards = interp->guards;
  interp->guards |= interp_guard(value);
  interp->frame->chosen |= origin_of_choice(value.origin);
  for (int i = 0; i < block->n_parts; i++) {
    if (block->parts[i]->kind != SYNTAX_CASE && block->parts[i]->kind != SYNTAX_DEFAULT) continue;
    interp_restore(interp, before, count);
    enum flow flow = FLOW_NEXT;
    for (int j = i; j < block->n_parts && flow == FLOW_NEXT; j++) flow = interp_statement(interp, block->parts[j]);
    if (flow == FLOW_CONTINUE) interp_leave(interp, flow);
    if (flow == FLOW_RETURN || flow == FLOW_CONTINUE) continue;
    interp_join(interp, after, count, value);
    interp_drop(interp, after);
    after = interp_save(interp);
  }
  interp_restore(interp, after, count);
  interp->guards = guards;
  interp_drop(interp, after);
  interp_drop(interp, before);
  return FLOW_NEXT;
}

static enum flow interp_return(struct interp *interp, struct syntax *node) {
  struct frame *frame = interp->frame;
  struct value value = node->n_parts > 0 ? interp_evaluate(interp, node->parts[0]) : value_number(0);
  frame->result = frame->returned ? value_join(frame->result, value) : value;
  if (frame->returned)
    interp_agree(interp, &frame->at_return);
  else
    frame->at_return = interp->in_flight;
  frame->returned = true;
  return FLOW_RETURN;
}

enum flow interp_statement(struct interp *interp, struct syntax *node) {
  if (node->note != NULL && node->note->directive != NULL) return interp_directive(interp, node);
  return interp_statement_alone(interp, node);
}

enum flow interp_statement_alone(struct interp *interp, struct syntax *node) {
  if (interp->steps++ >= INTERP_MAX_STEPS) return FLOW_NEXT;
  switch (node->kind) {
  case SYNTAX_BLOCK:
    return interp_block(interp, node);
  case SYNTAX_DECLARE:
    declare(interp, node->variable);
    return FLOW_NEXT;
  case SYNTAX_IF:
    return interp_if(interp, node);
  case SYNTAX_FOR:
  case SYNTAX_WHILE:
  case SYNTAX_DO:
    return interp_loop(interp, node);
  case SYNTAX_RETURN:
    return interp_return(interp, node);
  case SYNTAX_BREAK:
    return FLOW_BREAK;
  case SYNTAX_CONTINUE:
    return FLOW_CONTINUE;
  case SYNTAX_EMPTY:
    return FLOW_NEXT;
  case SYNTAX_GOTO:
    interp_lose_track(interp, node, "where this goto leads");
    return FLOW_NEXT;
  case SYNTAX_ASSEMBLER:
    interp_lose_track(interp, node, "assembler");
    return FLOW_NEXT;
  case SYNTAX_SWITCH:
    return interp_switch(interp, node);
  case SYNTAX_CASE:
  case SYNTAX_DEFAULT:
  case SYNTAX_LABEL:
    return node->n_parts == 0 ? FLOW_NEXT : interp_statement(interp, node->parts[node->n_parts - 1]);
  default:
    if (chosen_argument(node) > 0) return interp_chosen_call(interp, node, chosen_argument(node));
    interp_evaluate(interp, node);
    return FLOW_NEXT;
  }
}
