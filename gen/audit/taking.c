#include "gen/audit/taking.h"

#include <string.h>

enum { DEEPEST = 8 };

/* A place in the program, on the way from main. */
struct way {
  struct audit *audit;
  struct claim *claim;
  const struct function *step;
  int *n_taken;
  const struct syntax *loop; /* the innermost; NULL: none */
  bool may_be_passed;        /* a condition, or a jump before it, decides whether it is reached */
  int depth;
};

static void follow(struct way way, struct syntax *node);

static void refuse(const struct way *way, const struct syntax *call, const char *why) {
  claim_finding(way->audit, way->claim, VERDICT_BROKEN, call->where, "'%s' %s", way->step->name, why);
}

/* The variable that a for counts up by one; NULL: none. */
static const struct variable *counter_of(const struct syntax *loop) {
  if (loop == NULL || loop->kind != SYNTAX_FOR || loop->parts[2] == NULL) return NULL;
  const struct syntax *step = syntax_bare(loop->parts[2]);
  if (step->kind != SYNTAX_INCREMENT || step->integer != 1) return NULL;
  const struct syntax *target = syntax_bare(step->parts[0]);
  return target->kind == SYNTAX_VARIABLE ? target->variable : NULL;
}

/* Whether a step gets a run of the runtime, and numbers. */
static bool is_of_runtime(const struct function *step) {
  const struct type *type = step->n_parameters > 0 ? step->parameters[0]->type : &type_void;
  return type->kind == TYPE_POINTER && strcmp(type->element->name, "struct accel_run") == 0;
}

static bool is_counter(const struct syntax *node, const struct variable *counter) {
  node = syntax_bare((struct syntax *)node);
  return node->kind == SYNTAX_VARIABLE && node->variable == counter;
}

/* Such as the place of a batch's first sample. */
static bool is_multiple(const struct syntax *node, const struct variable *counter) {
  node = syntax_bare((struct syntax *)node);
  return node->kind == SYNTAX_BINARY && node->operation == OPERATOR_MULTIPLY && is_counter(node->parts[0], counter) &&
         syntax_bare(node->parts[1])->kind == SYNTAX_INTEGER;
}

/* Whether one of a call's numbers is the counter, and the others are constants. What gets several, a batch of an
 * evaluation, may get a multiple of the counter. */
static bool gets_counter(const struct syntax *call, const struct variable *counter) {
  int constants = 0, counted = 0, multiples = 0, others = 0;
  for (int i = 1; i < call->n_parts; i++) {
    if (call->parts[i]->type->kind != TYPE_INTEGER) continue;
    if (syntax_bare(call->parts[i])->kind == SYNTAX_INTEGER)
      constants++;
    else if (is_counter(call->parts[i], counter))
      counted++;
    else if (is_multiple(call->parts[i], counter))
      multiples++;
    else
      others++;
  }
  return others == 0 && counted + multiples == 1 && (multiples == 0 || constants > 0);
}

static void check_call(const struct way *way, struct syntax *call) {
  const struct variable *counter = counter_of(way->loop);
  ++*way->n_taken;
  if (way->may_be_passed) refuse(way, call, "is not called in every iteration");
  if (way->loop == NULL) refuse(way, call, "is called outside of a loop");
  if (counter != NULL && is_of_runtime(way->step) && !gets_counter(call, counter))
    refuse(way, call, "gets another number than the loop's counter");
}

/* A jump passes what comes after it; a break or a continue of a loop in `node` does not. */
static bool jumps(struct syntax *node, bool in_loop) {
  if (node == NULL) return false;
  if (node->kind == SYNTAX_RETURN || node->kind == SYNTAX_GOTO || node->kind == SYNTAX_LABEL) return true;
  if (!in_loop && (node->kind == SYNTAX_BREAK || node->kind == SYNTAX_CONTINUE)) return true;
  bool loop = node->kind == SYNTAX_FOR || node->kind == SYNTAX_WHILE || node->kind == SYNTAX_DO;
  for (int i = 0; i < node->n_parts; i++)
    if (jumps(node->parts[i], in_loop || loop)) return true;
  return false;
}

static void follow_block(struct way way, struct syntax *block) {
  for (int i = 0; i < block->n_parts; i++) {
    follow(way, block->parts[i]);
    way.may_be_passed = way.may_be_passed || jumps(block->parts[i], false);
  }
}

static void follow_call(struct way way, struct syntax *call) {
  struct function *callee = call->function;
  if (callee == NULL) return;
  if (callee == way.step) {
    check_call(&way, call);
  } else if (callee->body != NULL && way.depth < DEEPEST) {
    way.depth++;
    follow(way, callee->body);
  }
}

static void follow(struct way way, struct syntax *node) {
  if (node == NULL) return;
  bool loop = node->kind == SYNTAX_FOR || node->kind == SYNTAX_WHILE || node->kind == SYNTAX_DO;
  bool chooses = node->kind == SYNTAX_IF || node->kind == SYNTAX_SELECT || node->kind == SYNTAX_SWITCH ||
                 (node->kind == SYNTAX_BINARY && (node->operation == OPERATOR_AND || node->operation == OPERATOR_OR));
  if (node->kind == SYNTAX_BLOCK) {
    follow_block(way, node);
    return;
  }
  if (node->kind == SYNTAX_DECLARE) follow(way, node->variable->initial);
  for (int i = 0; i < node->n_parts; i++) {
    struct way inner = way;
    if (loop) inner.loop = node;
    inner.may_be_passed = way.may_be_passed || (chooses && i > 0);
    follow(inner, node->parts[i]);
  }
  if (node->kind == SYNTAX_CALL) follow_call(way, node);
}

void taking_check(struct audit *audit, struct claim *claim, struct function *entry, const struct function *step) {
  int n_taken = 0;
  struct way way = {.audit = audit, .claim = claim, .step = step, .n_taken = &n_taken};
  follow(way, entry->body);
  if (n_taken == 0)
    claim_finding(audit, claim, VERDICT_CANNOT_TELL, step->where, "no call of '%s' is found below main", step->name);
  else if (n_taken > 1)
    claim_finding(audit, claim, VERDICT_BROKEN, step->where, "'%s' is called at %d places", step->name, n_taken);
}
