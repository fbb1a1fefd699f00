#include "gen/verify/proof/lift.h"

#include <string.h>

#include "gen/verify/proof/lift_private.h"

void lift_fail(struct lift *lift, const char *why) {
  terms_fail(lift->terms, why);
}

bool lift_has_failed(const struct lift *lift) {
  return terms_failure(lift->terms) != NULL;
}

/* ---- Directives ---- */

struct lift_directives {
  struct arena *arena;
  struct placed {
    const struct syntax *node;
    const struct directive *directive;
  } *items;
  int count, capacity;
};

void lift_add_directive(struct lift_directives *directives, const struct syntax *node,
                        const struct directive *directive) {
  ARENA_PUSH(directives->arena, *directives, ((struct placed){node, directive}));
}

static void place(struct syntax *node, const struct directive *directive, bool at_end, void *data) {
  struct lift_directives *directives = data;
  if (!at_end) lift_add_directive(directives, node, directive);
}

struct lift_directives *lift_directives(struct arena *arena, const struct tree *tree, const char *text) {
  struct lift_directives *found = arena_alloc(arena, sizeof *found);
  struct directives *all = arena_alloc(arena, sizeof *all);
  found->arena = arena;
  *all = directives_read(arena, tree->file, text);
  for (int i = 0; i < tree->n_functions; i++)
    if (tree->functions[i]->body != NULL && strcmp(tree->functions[i]->where.file, tree->file) == 0)
      directives_place(all, tree->functions[i], place, found);
  return found;
}

const struct directive *lift_directive(const struct lift *lift, const struct syntax *node) {
  for (int i = 0; i < lift->directives->count; i++)
    if (lift->directives->items[i].node == node) return lift->directives->items[i].directive;
  return NULL;
}

/* ---- Statements ---- */

static void declare(struct lift *lift, const struct variable *variable) {
  const struct type *type = variable->type;
  if (variable->is_static) return; /* a constant, or space: found where it is used */
  if (type->kind == TYPE_POINTER) {
    if (variable->initial == NULL) {
      lift_fail(lift, "it has a pointer to nothing");
      return;
    }
    const struct lifted at = lift_value(lift, variable->initial);
    if (!at.is_address) lift_fail(lift, "it has a pointer that is not followed");
    lift_bind(lift, variable, at.memory, at.term);
    return;
  }
  const int memory = lift_memory(lift, false);
  const struct term *zero = term_number(lift->terms, 0);
  if (type->kind != TYPE_ARRAY) {
    const struct term *value = variable->initial != NULL ? lift_number(lift, variable->initial) : NULL;
    lift_bind(lift, variable, memory, NULL);
    if (value != NULL && !lift_has_failed(lift)) lift_push(lift, memory, (struct piece){.start = zero, .value = value});
    return;
  }
  lift_bind(lift, variable, memory, NULL);
  if (variable->initial == NULL) return;
  const struct syntax *list = variable->initial;
  while (list->kind == SYNTAX_LIST && list->n_parts == 1) list = list->parts[0];
  double x;
  if (variable->initial->kind != SYNTAX_LIST || list->kind == SYNTAX_LIST ||
      !term_is_number(lift_number(lift, list), &x) || x != 0) {
    lift_fail(lift, "it has an array with numbers of its own");
    return;
  }
  const struct type *element = type;
  while (element->kind == TYPE_ARRAY) element = element->element;
  const struct term *one = term_variable(lift->terms, type->size / element->size);
  lift_write_all(lift, memory, zero, (double)element->size, term_atom(one), zero);
}

/* The memories after a condition's two branches: each number is chosen by it. */
static void join(struct lift *lift, const struct term *condition, const struct lift_state *before,
                 const struct lift_state *other) {
  for (int m = 1; m <= lift->n_memories && !lift_has_failed(lift); m++) {
    struct memory *to = &lift->now.memories[m];
    const struct memory with = *to, without = other->memories[m];
    if (with.top == without.top || with.depth > lift->depth) continue;
    const struct piece *common = before->memories[m].top, *pieces[16];
    int count = 0;
    to->top = common;
    for (int side = 0; side < 2; side++)
      for (const struct piece *at = side == 0 ? with.top : without.top; at != NULL && at != common; at = at->below) {
        if (at->n > 0 || at->over != NULL || count == 16) {
          lift_fail(lift, "it has a condition with a loop in it");
          return;
        }
        pieces[count++] = at;
      }
    if (count == 0) continue;
    for (int i = 0; i < count; i++) {
      const struct term *yes = lift_read_from(lift, &with, m, pieces[i]->start);
      const struct term *no = lift_read_from(lift, &without, m, pieces[i]->start);
      if (!lift_has_failed(lift))
        lift_push(lift, m,
                  (struct piece){.start = pieces[i]->start, .value = term_select(lift->terms, condition, yes, no)});
    }
  }
}

/* After a branch that does nothing but return a number: the rest of the function is for where its condition is 0. */
static void return_early(struct lift *lift, const struct term *condition, const struct lift_state *before) {
  struct early *early = arena_alloc(lift->arena, sizeof *early);
  for (int m = 1; m <= lift->before; m++)
    if (lift->now.memories[m].top != before->memories[m].top) lift_fail(lift, "it returns from several places");
  if (lift->result == NULL) lift_fail(lift, "it returns from several places");
  *early = (struct early){condition, lift->result, lift->early};
  lift->early = early;
  lift->returned = false;
  lift->result = NULL;
  lift->now = *before;
}

/* The number that a function returns, at its end or before. */
static const struct term *result_of(struct lift *lift) {
  const struct term *result = lift->result;
  if (lift->early != NULL && result == NULL) lift_fail(lift, "it returns from several places");
  for (const struct early *at = lift->early; at != NULL && !lift_has_failed(lift); at = at->below)
    result = term_select(lift->terms, at->condition, at->result, result);
  return result;
}

static void choose(struct lift *lift, const struct syntax *node) {
  const struct term *condition = lift_truth(lift, node->parts[0]);
  const struct syntax *other = node->n_parts > 2 ? node->parts[2] : NULL;
  double x;
  if (term_is_number(condition, &x)) {
    if (x != 0 || other != NULL) lift_statement(lift, x != 0 ? node->parts[1] : other);
    return;
  }
  struct lift_state *before = arena_alloc(lift->arena, sizeof *before);
  struct lift_state *without = arena_alloc(lift->arena, sizeof *without);
  *before = lift->now;
  lift->nested++;
  if (other != NULL) lift_statement(lift, other);
  *without = lift->now;
  lift->now = *before;
  lift_statement(lift, node->parts[1]);
  lift->nested--;
  if (lift->returned && other == NULL && lift->nested == 0) {
    return_early(lift, condition, before);
    return;
  }
  if (lift->returned) lift_fail(lift, "it returns from several places");
  if (!lift_has_failed(lift)) join(lift, condition, before, without);
}

/* A block, or a declaration of several variables, whose names go on. */
static void block(struct lift *lift, const struct syntax *node) {
  const int bindings = lift->now.n_bindings;
  bool declares = true;
  for (int i = 0; i < node->n_parts; i++) declares = declares && node->parts[i]->kind == SYNTAX_DECLARE;
  for (int i = 0; i < node->n_parts && !lift_has_failed(lift); i++) {
    if (lift->returned) lift_fail(lift, "it returns before its end");
    lift_statement(lift, node->parts[i]);
  }
  if (!declares) lift->now.n_bindings = bindings;
}

static void returns(struct lift *lift, const struct syntax *node) {
  if (node->n_parts > 0 && node->parts[0] != NULL) lift->result = lift_number(lift, node->parts[0]);
  lift->returned = true;
}

/* A block that all threads run: what they do not share out, they may only do to numbers of their own. */
static void region(struct lift *lift, const struct syntax *node) {
  const int outer = lift->region;
  lift->region = ++lift->depth;
  if (node->kind == SYNTAX_FOR)
    lift_loop(lift, node, NULL);
  else
    block(lift, node);
  lift->depth--;
  lift->region = outer;
}

/* Whether its clauses are followed: of reductions, sums alone. */
static bool is_followed(const struct directive *directive) {
  for (int i = 0; i < directive->n_names; i++)
    if (directive->names[i].operation == NULL || strcmp(directive->names[i].operation, "+") != 0) return false;
  return directive->unknown == NULL && directive->next == NULL;
}

void lift_statement(struct lift *lift, const struct syntax *node) {
  if (node == NULL || lift_has_failed(lift)) return;
  const struct directive *directive = lift_directive(lift, node);
  if (directive != NULL && !is_followed(directive)) {
    lift_fail(lift, "it has a directive that is not followed");
    return;
  }
  if (directive != NULL && directive->parts == DIRECTIVE_PARALLEL && directive->n_names == 0) {
    region(lift, node);
  } else if (directive != NULL &&
             (node->kind != SYNTAX_FOR || (directive->parts & (DIRECTIVE_LOOP | DIRECTIVE_SIMD)) == 0)) {
    lift_fail(lift, "it has a directive that is not followed");
  } else if (node->kind == SYNTAX_FOR) {
    lift_loop(lift, node, directive);
  } else if (node->kind == SYNTAX_BLOCK) {
    block(lift, node);
  } else if (node->kind == SYNTAX_DECLARE) {
    declare(lift, node->variable);
  } else if (node->kind == SYNTAX_IF) {
    choose(lift, node);
  } else if (node->kind == SYNTAX_RETURN) {
    returns(lift, node);
  } else if (node->kind != SYNTAX_EMPTY) {
    lift_value(lift, node);
  }
}

/* ---- Functions ---- */

struct lifted lift_own_call(struct lift *lift, const struct function *function, const struct syntax *node) {
  const struct lifted nothing = {false, 0, term_number(lift->terms, 0)};
  const struct term *outer = lift->result;
  const int bindings = lift->now.n_bindings, before = lift->n_memories;
  struct lifted arguments[16];
  if (function->body == NULL || function->n_parameters > 16 || node->n_parts - 1 != function->n_parameters ||
      ++lift->calls > 200 || lift->depth > 30) {
    lift_fail(lift, "it calls what is not followed");
    return nothing;
  }
  for (int i = 0; i < function->n_parameters; i++) arguments[i] = lift_value(lift, node->parts[i + 1]);
  for (int i = 0; i < function->n_parameters && !lift_has_failed(lift); i++) {
    const struct lifted *argument = &arguments[i];
    const int memory = argument->is_address ? argument->memory : lift_memory(lift, false);
    lift_bind(lift, function->parameters[i], memory, argument->is_address ? argument->term : NULL);
    if (!argument->is_address)
      lift_push(lift, memory, (struct piece){.start = term_number(lift->terms, 0), .value = argument->term});
  }
  const struct early *const outer_early = lift->early;
  const int outer_before = lift->before, outer_nested = lift->nested;
  lift->result = NULL;
  lift->early = NULL;
  lift->before = before;
  lift->nested = 0;
  lift_statement(lift, function->body);
  const struct term *returned = result_of(lift);
  const struct lifted result = {false, 0, returned != NULL ? returned : nothing.term};
  lift->returned = false;
  lift->result = outer;
  lift->early = outer_early;
  lift->before = outer_before;
  lift->nested = outer_nested;
  lift->now.n_bindings = bindings;
  return result;
}

static bool is_array(const struct type *type) {
  return type->kind == TYPE_ARRAY || type->kind == TYPE_POINTER;
}

struct lift *lift_function(struct arena *arena, struct terms *terms, const struct tree *tree,
                           struct lift_directives *directives, const struct function *function) {
  struct lift *lift = arena_alloc(arena, sizeof *lift);
  const struct term *zero = term_number(terms, 0);
  *lift = (struct lift){.arena = arena, .terms = terms, .tree = tree, .directives = directives};
  for (int i = 0; i < function->n_parameters; i++) {
    const struct variable *parameter = function->parameters[i];
    const int memory = lift_memory(lift, true);
    lift_bind(lift, parameter, memory, is_array(parameter->type) ? zero : NULL);
  }
  const struct variable *global = tree_variable(tree, "arena");
  lift->the_arena = lift_memory(lift, true);
  if (global != NULL && global->type->kind == TYPE_POINTER) lift_bind(lift, global, lift->the_arena, zero);
  lift->before = lift->n_memories;
  lift_statement(lift, function->body);
  if (!lift_has_failed(lift)) lift->result = result_of(lift);
  return lift;
}

int lift_arena(const struct lift *lift) {
  return lift->the_arena;
}

const struct term *lift_result(const struct lift *lift) {
  return lift->result;
}
