/* Statements. */
#include "gen/model/evaluate.h"

/* ---- Declarations ---- */

/* The type of a variable-length array, its sizes evaluated: sizes[0] belongs to the innermost dimension. */
static const struct type *sized_type(struct evaluator *evaluator, const struct variable *variable,
                                     const struct type *type, int *next) {
  if (ctype_of(type) != CTYPE_ARRAY) return type;
  struct type *sized = arena_alloc(evaluator->arena, sizeof *sized);
  *sized = *type;
  sized->element = sized_type(evaluator, variable, type->element, next);
  if (*next >= variable->n_sizes) return sized;
  const struct syntax *size = variable->sizes[(*next)++];
  struct cvalue count = evaluate(evaluator, size);
  if (count.kind != CVALUE_INTEGER || count.integer < 1)
    evaluate_fail(evaluator, size->where, NULL, "an array of %s elements", cvalue_text(evaluator->arena, count));
  sized->count = count.integer;
  return sized;
}

static void declare(struct evaluator *evaluator, const struct variable *variable) {
  if (variable->is_static) return;
  int next = 0;
  const struct type *type = sized_type(evaluator, variable, variable->type, &next);
  struct cvalue *cell = &evaluator->activation->slots[variable->slot];
  *cell = new_value(evaluator, type, false, variable->where);
  if (variable->initial == NULL) return;
  struct cvalue value = initialize(evaluator, type, variable->initial, false);
  *cell = value;
  if (value.kind == CVALUE_TENSOR) builder_name(evaluator->builder, value.tensor, variable->name);
}

/* ---- Loops ---- */

enum { MOST_LOOPS = 16 }; /* open in one region, for the builder */

static bool find_tensor(struct syntax *node, void *data) {
  bool *found = data;
  *found = *found || ctype_has_tensor(node->type);
  return !*found;
}

/* Whether the builder hears of a loop: only where it makes tensors. */
static bool begin_loop(struct evaluator *evaluator, const struct syntax *node) {
  bool tensors = false;
  for (int i = 0; i < node->n_parts; i++) syntax_visit(node->parts[i], find_tensor, &tensors);
  bool records = tensors && evaluator->n_loops < MOST_LOOPS;
  if (!records) return false;
  evaluator->n_loops++;
  builder_loop_begin(evaluator->builder);
  return true;
}

static void end_loop(struct evaluator *evaluator, bool records) {
  if (!records) return;
  evaluator->n_loops--;
  builder_loop_end(evaluator->builder);
}

static bool holds(struct evaluator *evaluator, const struct syntax *condition) {
  return condition == NULL || evaluate_truth(evaluator, condition);
}

/* One pass; false when the loop ends by break or return. */
static bool pass(struct evaluator *evaluator, const struct syntax *body, bool records, enum flow *flow) {
  evaluate_step(evaluator, body->where, 1);
  if (records) builder_loop_iteration(evaluator->builder);
  *flow = evaluate_statement(evaluator, body);
  return *flow != FLOW_BREAK && *flow != FLOW_RETURN;
}

static enum flow run_for(struct evaluator *evaluator, const struct syntax *node) {
  enum flow flow = FLOW_NEXT;
  if (node->parts[0] != NULL) evaluate_statement(evaluator, node->parts[0]);
  bool records = begin_loop(evaluator, node);
  while (holds(evaluator, node->parts[1]) && pass(evaluator, node->parts[3], records, &flow))
    if (node->parts[2] != NULL) evaluate(evaluator, node->parts[2]);
  end_loop(evaluator, records);
  return flow == FLOW_RETURN ? FLOW_RETURN : FLOW_NEXT;
}

static enum flow run_while(struct evaluator *evaluator, const struct syntax *node) {
  enum flow flow = FLOW_NEXT;
  bool records = begin_loop(evaluator, node);
  while (evaluate_truth(evaluator, node->parts[0]) && pass(evaluator, node->parts[1], records, &flow)) continue;
  end_loop(evaluator, records);
  return flow == FLOW_RETURN ? FLOW_RETURN : FLOW_NEXT;
}

static enum flow run_do(struct evaluator *evaluator, const struct syntax *node) {
  enum flow flow = FLOW_NEXT;
  bool records = begin_loop(evaluator, node);
  while (pass(evaluator, node->parts[0], records, &flow) && evaluate_truth(evaluator, node->parts[1])) continue;
  end_loop(evaluator, records);
  return flow == FLOW_RETURN ? FLOW_RETURN : FLOW_NEXT;
}

/* ---- switch ---- */

/* Whether a labelled statement holds the label of a value; `fallback`: whether it holds default. */
static bool has_label(struct evaluator *evaluator, const struct syntax *node, int64_t value, bool fallback) {
  for (;;) {
    if (node->kind == SYNTAX_DEFAULT) {
      if (fallback) return true;
      node = node->parts[0];
    } else if (node->kind == SYNTAX_CASE) {
      struct cvalue label = evaluate(evaluator, node->parts[0]);
      if (!fallback && label.kind == CVALUE_INTEGER && label.integer == value) return true;
      node = node->parts[1];
    } else {
      return false;
    }
  }
}

static int find_label(struct evaluator *evaluator, const struct syntax *block, int64_t value) {
  for (int fallback = 0; fallback < 2; fallback++)
    for (int i = 0; i < block->n_parts; i++)
      if (has_label(evaluator, block->parts[i], value, fallback == 1)) return i;
  return block->n_parts;
}

static enum flow run_switch(struct evaluator *evaluator, const struct syntax *node) {
  struct cvalue value = evaluate(evaluator, node->parts[0]);
  if (value.kind != CVALUE_INTEGER)
    evaluate_fail(evaluator, node->parts[0]->where, NULL, "switch needs a whole number, not %s",
                  cvalue_text(evaluator->arena, value));
  const struct syntax *block = node->parts[1];
  for (int i = find_label(evaluator, block, value.integer); i < block->n_parts; i++) {
    enum flow flow = evaluate_statement(evaluator, block->parts[i]);
    if (flow == FLOW_BREAK) return FLOW_NEXT;
    if (flow != FLOW_NEXT) return flow;
  }
  return FLOW_NEXT;
}

/* ---- All ---- */

static enum flow run_return(struct evaluator *evaluator, const struct syntax *node) {
  struct activation *activation = evaluator->activation;
  activation->result = (struct cvalue){.kind = CVALUE_VOID};
  if (node->n_parts > 0)
    store_value(evaluator, &activation->result, evaluate(evaluator, node->parts[0]), activation->function->result, NULL,
                node->where);
  return FLOW_RETURN;
}

static enum flow run_block(struct evaluator *evaluator, const struct syntax *node) {
  for (int i = 0; i < node->n_parts; i++) {
    enum flow flow = evaluate_statement(evaluator, node->parts[i]);
    if (flow != FLOW_NEXT) return flow;
  }
  return FLOW_NEXT;
}

static enum flow statement(struct evaluator *evaluator, const struct syntax *node) {
  switch (node->kind) {
  case SYNTAX_BLOCK:
    return run_block(evaluator, node);
  case SYNTAX_DECLARE:
    declare(evaluator, node->variable);
    return FLOW_NEXT;
  case SYNTAX_IF:
    if (evaluate_truth(evaluator, node->parts[0])) return evaluate_statement(evaluator, node->parts[1]);
    return node->parts[2] == NULL ? FLOW_NEXT : evaluate_statement(evaluator, node->parts[2]);
  case SYNTAX_FOR:
    return run_for(evaluator, node);
  case SYNTAX_WHILE:
    return run_while(evaluator, node);
  case SYNTAX_DO:
    return run_do(evaluator, node);
  case SYNTAX_SWITCH:
    return run_switch(evaluator, node);
  case SYNTAX_CASE:
    return evaluate_statement(evaluator, node->parts[1]);
  case SYNTAX_DEFAULT:
    return evaluate_statement(evaluator, node->parts[0]);
  case SYNTAX_BREAK:
    return FLOW_BREAK;
  case SYNTAX_CONTINUE:
    return FLOW_CONTINUE;
  case SYNTAX_RETURN:
    return run_return(evaluator, node);
  case SYNTAX_EMPTY:
    return FLOW_NEXT;
  default:
    evaluate(evaluator, node);
    return FLOW_NEXT;
  }
}

enum { DEEPEST = 6000 };

enum flow evaluate_statement(struct evaluator *evaluator, const struct syntax *node) {
  evaluate_step(evaluator, node->where, 1);
  if (++evaluator->depth > DEEPEST)
    evaluate_fail(evaluator, node->where, "take parts out into functions",
                  "calls and statements are nested too deeply");
  enum flow flow = statement(evaluator, node);
  evaluator->depth--;
  return flow;
}
