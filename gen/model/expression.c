/* Expressions: values and lvalues. */
#include "gen/model/evaluate.h"

#include <string.h>

/* ---- Lvalues ---- */

/* The lvalue that an expression names. */
static struct lvalue evaluate_lvalue(struct evaluator *evaluator, const struct syntax *node);

static struct lvalue static_lvalue(struct evaluator *evaluator, const struct variable *variable) {
  struct cvalue *cell = &evaluator->statics[variable->slot];
  if (cell->kind == CVALUE_UNSET) {
    *cell = variable->initial != NULL ? initialize(evaluator, variable->type, variable->initial, false)
                                      : new_value(evaluator, variable->type, true, variable->where);
  }
  return (struct lvalue){cell, true};
}

/* The cell that a pointer points to, `offset` elements on. */
static struct lvalue pointed_lvalue(struct evaluator *evaluator, struct cvalue pointer, struct cvalue offset,
                                    struct location where) {
  if (pointer.kind == CVALUE_INTEGER && offset.kind == CVALUE_POINTER) { /* C allows 1[array] */
    struct cvalue swapped = pointer;
    pointer = offset;
    offset = swapped;
  }
  if (pointer.kind != CVALUE_POINTER || offset.kind != CVALUE_INTEGER)
    evaluate_fail(evaluator, where, NULL, "%s has no elements", cvalue_text(evaluator->arena, pointer));
  int64_t index;
  bool fits = !__builtin_add_overflow(pointer.index, offset.integer, &index);
  if (!fits || index < 0 || index >= pointer.count)
    evaluate_fail(evaluator, where, NULL, "index %s is outside the array, which has %lld element%s",
                  cvalue_text(evaluator->arena, offset), (long long)pointer.count, pointer.count == 1 ? "" : "s");
  return (struct lvalue){&pointer.items[index], pointer.fixed};
}

static struct lvalue member_lvalue(struct evaluator *evaluator, const struct syntax *node) {
  struct lvalue base = evaluate_lvalue(evaluator, node->parts[0]);
  if (base.cell->kind != CVALUE_AGGREGATE)
    evaluate_fail(evaluator, node->where, NULL, "this struct is read before it has a value");
  return (struct lvalue){&base.cell->items[node->member], base.fixed};
}

/* A value that is not stored anywhere, as the lvalue of its parts. */
static struct lvalue temporary_lvalue(struct evaluator *evaluator, const struct syntax *node) {
  struct cvalue *cell = arena_alloc(evaluator->arena, sizeof *cell);
  *cell = evaluate(evaluator, node);
  return (struct lvalue){cell, true};
}

static struct lvalue evaluate_lvalue(struct evaluator *evaluator, const struct syntax *node) {
  struct cvalue zero = cvalue_integer(0);
  switch (node->kind) {
  case SYNTAX_VARIABLE:
    if (node->variable->is_static) return static_lvalue(evaluator, node->variable);
    return (struct lvalue){&evaluator->activation->slots[node->variable->slot], false};
  case SYNTAX_MEMBER:
    return member_lvalue(evaluator, node);
  case SYNTAX_INDEX: {
    struct cvalue pointer = evaluate(evaluator, node->parts[0]);
    return pointed_lvalue(evaluator, pointer, evaluate(evaluator, node->parts[1]), node->where);
  }
  case SYNTAX_UNARY:
    if (node->operation == OPERATOR_DEREFERENCE)
      return pointed_lvalue(evaluator, evaluate(evaluator, node->parts[0]), zero, node->where);
    break;
  default:
    break;
  }
  return temporary_lvalue(evaluator, node);
}

/* The value of an index that can be read without evaluating anything again. */
static const char *index_name(struct evaluator *evaluator, const struct syntax *node) {
  while (node->kind == SYNTAX_CAST) node = node->parts[0];
  if (node->kind == SYNTAX_INTEGER) return arena_printf(evaluator->arena, "%lld", (long long)node->integer);
  if (node->kind != SYNTAX_VARIABLE || node->variable->is_static) return "...";
  struct cvalue value = evaluator->activation->slots[node->variable->slot];
  return value.kind == CVALUE_INTEGER ? cvalue_text(evaluator->arena, value) : "...";
}

/* What a message calls an expression: "x", "c.n_embd", "parts[2]"; NULL for one that has no name. */
static const char *name_of(struct evaluator *evaluator, const struct syntax *node) {
  if (node->kind == SYNTAX_VARIABLE) return node->variable->name;
  if (node->kind == SYNTAX_CAST) return name_of(evaluator, node->parts[0]);
  if (node->kind != SYNTAX_MEMBER && node->kind != SYNTAX_INDEX) return NULL;
  const char *base = name_of(evaluator, node->parts[0]);
  if (base == NULL) return NULL;
  if (node->kind == SYNTAX_INDEX)
    return arena_printf(evaluator->arena, "%s[%s]", base, index_name(evaluator, node->parts[1]));
  return arena_printf(evaluator->arena, "%s.%s", base, node->text);
}

static struct cvalue read_lvalue(struct evaluator *evaluator, const struct syntax *node) {
  struct cvalue value = *evaluate_lvalue(evaluator, node).cell;
  if (value.kind != CVALUE_UNSET) return value;
  const char *name = name_of(evaluator, node);
  evaluate_fail(evaluator, node->where, NULL, "'%s' is read before it has a value", name == NULL ? "this" : name);
}

/* ---- Assignment ---- */

/* The name that a tensor gets from what it is assigned to. */
static const char *holder_name(const struct syntax *node) {
  if (node->kind == SYNTAX_VARIABLE) return node->variable->name;
  if (node->kind == SYNTAX_MEMBER) return node->text;
  if (node->kind == SYNTAX_INDEX || node->kind == SYNTAX_CAST) return holder_name(node->parts[0]);
  return NULL;
}

static struct cvalue *assigned_cell(struct evaluator *evaluator, const struct syntax *node) {
  struct lvalue lvalue = evaluate_lvalue(evaluator, node);
  if (!lvalue.fixed) return lvalue.cell;
  const char *name = name_of(evaluator, node);
  evaluate_fail(evaluator, node->where,
                "a model keeps nothing between calls, and a function that gives tensors changes nothing of its caller: "
                "return the value, several of them in a struct",
                "'%s' cannot be assigned here", name == NULL ? "this" : name);
}

static struct cvalue assign(struct evaluator *evaluator, const struct syntax *node) {
  const struct syntax *left = node->parts[0];
  struct cvalue value;
  if (node->operation == OPERATOR_NONE) {
    value = evaluate(evaluator, node->parts[1]);
  } else {
    struct cvalue old = read_lvalue(evaluator, left);
    value = evaluate_arithmetic(evaluator, node->operation, old, evaluate(evaluator, node->parts[1]), node->where);
  }
  struct cvalue *cell = assigned_cell(evaluator, left);
  store_value(evaluator, cell, value, left->type, holder_name(left), node->where);
  return *cell;
}

static struct cvalue increment(struct evaluator *evaluator, const struct syntax *node) {
  const struct syntax *left = node->parts[0];
  struct cvalue old = read_lvalue(evaluator, left);
  struct cvalue *cell = assigned_cell(evaluator, left);
  struct cvalue new = evaluate_arithmetic(evaluator, OPERATOR_ADD, old, cvalue_integer(node->integer), node->where);
  store_value(evaluator, cell, new, left->type, NULL, node->where);
  return node->prefix ? *cell : old;
}

/* ---- Operators ---- */

static struct cvalue binary(struct evaluator *evaluator, const struct syntax *node) {
  const struct syntax *left = node->parts[0], *right = node->parts[1];
  if (node->operation == OPERATOR_AND)
    return cvalue_integer(evaluate_truth(evaluator, left) && evaluate_truth(evaluator, right));
  if (node->operation == OPERATOR_OR)
    return cvalue_integer(evaluate_truth(evaluator, left) || evaluate_truth(evaluator, right));
  struct cvalue a = evaluate(evaluator, left), b = evaluate(evaluator, right);
  if (node->operation == OPERATOR_COMMA) return b;
  if (a.kind == CVALUE_POINTER && b.kind == CVALUE_INTEGER &&
      (node->operation == OPERATOR_ADD || node->operation == OPERATOR_SUBTRACT)) {
    int64_t step = node->operation == OPERATOR_ADD ? b.integer : -(b.integer + 1) + 1;
    if (b.integer > a.count || b.integer < -a.count || a.index + step < 0 || a.index + step > a.count)
      evaluate_fail(evaluator, node->where, NULL, "this leaves the array, which has %lld elements", (long long)a.count);
    a.index += step;
    return a;
  }
  return evaluate_arithmetic(evaluator, node->operation, a, b, node->where);
}

static struct cvalue unary(struct evaluator *evaluator, const struct syntax *node) {
  if (node->operation == OPERATOR_DEREFERENCE) return read_lvalue(evaluator, node);
  if (node->operation == OPERATOR_NOT) return cvalue_integer(!evaluate_truth(evaluator, node->parts[0]));
  return evaluate_sign(evaluator, node->operation, evaluate(evaluator, node->parts[0]), node->where);
}

/* An array used as a value is a pointer to its first element. */
static struct cvalue decay(struct evaluator *evaluator, const struct syntax *node) {
  struct lvalue lvalue = evaluate_lvalue(evaluator, node->parts[0]);
  if (lvalue.cell->kind == CVALUE_POINTER) return *lvalue.cell;
  if (lvalue.cell->kind != CVALUE_AGGREGATE)
    evaluate_fail(evaluator, node->where, NULL, "this array is read before it is declared");
  struct cvalue pointer = {.kind = CVALUE_POINTER, .fixed = lvalue.fixed};
  pointer.items = lvalue.cell->items;
  pointer.count = lvalue.cell->count;
  return pointer;
}

static struct cvalue cast(struct evaluator *evaluator, const struct syntax *node) {
  const struct syntax *inner = node->parts[0];
  if (ctype_of(node->type) == CTYPE_POINTER && ctype_of(inner->type) == CTYPE_ARRAY) return decay(evaluator, node);
  return convert_value(evaluator, evaluate(evaluator, inner), node->type, node->where);
}

static struct cvalue index_value(struct evaluator *evaluator, const struct syntax *node) {
  if (ctype_of(node->parts[0]->type) != CTYPE_STRING) return read_lvalue(evaluator, node);
  struct cvalue text = evaluate(evaluator, node->parts[0]), offset = evaluate(evaluator, node->parts[1]);
  if (offset.kind != CVALUE_INTEGER || offset.integer < 0 || offset.integer > (int64_t)strlen(text.string))
    evaluate_fail(evaluator, node->where, NULL, "index %s is outside the string \"%s\"",
                  cvalue_text(evaluator->arena, offset), text.string);
  return cvalue_integer(text.string[offset.integer]);
}

static struct cvalue expression(struct evaluator *evaluator, const struct syntax *node) {
  const struct outside *outside = subset_outside(node);
  if (outside != NULL) evaluate_fail(evaluator, node->where, outside->help, "a model cannot use %s", outside->what);
  switch (node->kind) {
  case SYNTAX_INTEGER:
    return (struct cvalue){.kind = CVALUE_INTEGER, .type = node->type, .integer = node->integer};
  case SYNTAX_REAL:
    return (struct cvalue){.kind = CVALUE_REAL, .type = node->type, .real = node->real};
  case SYNTAX_STRING:
    return cvalue_string(string_value(evaluator->arena, node->text));
  case SYNTAX_VARIABLE:
  case SYNTAX_MEMBER:
    return read_lvalue(evaluator, node);
  case SYNTAX_INDEX:
    return index_value(evaluator, node);
  case SYNTAX_CALL:
    return evaluate_call(evaluator, node);
  case SYNTAX_UNARY:
    return unary(evaluator, node);
  case SYNTAX_INCREMENT:
    return increment(evaluator, node);
  case SYNTAX_BINARY:
    return binary(evaluator, node);
  case SYNTAX_ASSIGN:
    return assign(evaluator, node);
  case SYNTAX_SELECT:
    return evaluate(evaluator, evaluate_truth(evaluator, node->parts[0]) ? node->parts[1] : node->parts[2]);
  case SYNTAX_CAST:
    return cast(evaluator, node);
  case SYNTAX_COMPOUND_LITERAL:
    return initialize(evaluator, node->type, node->parts[0], false);
  default:
    evaluate_fail(evaluator, node->where, NULL, "a model cannot use this here");
  }
}

enum { DEEPEST = 6000 };

struct cvalue evaluate(struct evaluator *evaluator, const struct syntax *node) {
  evaluate_step(evaluator, node->where, 1);
  if (++evaluator->depth > DEEPEST)
    evaluate_fail(evaluator, node->where, "keep parts of it in variables",
                  "calls and expressions are nested too deeply");
  struct cvalue value = expression(evaluator, node);
  evaluator->depth--;
  return value;
}
