/* Expressions: values and places. */
#include "gen/model/evaluate.h"

#include <string.h>

/* ---- Places ---- */

/* The place that an expression names. */
static struct place evaluate_place(struct evaluator *evaluator, const struct syntax *node);

static struct place lasting_place(struct evaluator *evaluator, const struct variable *variable) {
  struct datum *cell = &evaluator->lasting[variable->slot];
  if (cell->kind == DATUM_UNSET) {
    *cell = variable->initial != NULL ? initialize(evaluator, variable->type, variable->initial, false)
                                      : fresh_datum(evaluator, variable->type, true, variable->where);
  }
  return (struct place){cell, true};
}

/* The cell that a pointer points to, `offset` elements on. */
static struct place pointed_place(struct evaluator *evaluator, struct datum pointer, struct datum offset,
                                  struct location where) {
  if (pointer.kind == DATUM_INTEGER && offset.kind == DATUM_POINTER) { /* C allows 1[array] */
    struct datum swapped = pointer;
    pointer = offset;
    offset = swapped;
  }
  if (pointer.kind != DATUM_POINTER || offset.kind != DATUM_INTEGER)
    evaluate_fail(evaluator, where, NULL, "%s has no elements", datum_text(evaluator->arena, pointer));
  int64_t index;
  bool fits = !__builtin_add_overflow(pointer.index, offset.integer, &index);
  if (!fits || index < 0 || index >= pointer.count)
    evaluate_fail(evaluator, where, NULL, "index %s is outside the array, which has %lld element%s",
                  datum_text(evaluator->arena, offset), (long long)pointer.count, pointer.count == 1 ? "" : "s");
  return (struct place){&pointer.items[index], pointer.fixed};
}

static struct place member_place(struct evaluator *evaluator, const struct syntax *node) {
  struct place base = evaluate_place(evaluator, node->parts[0]);
  if (base.cell->kind != DATUM_AGGREGATE)
    evaluate_fail(evaluator, node->where, NULL, "this struct is read before it has a value");
  return (struct place){&base.cell->items[node->member], base.fixed};
}

/* A value that is not stored anywhere, as the place of its parts. */
static struct place temporary_place(struct evaluator *evaluator, const struct syntax *node) {
  struct datum *cell = arena_alloc(evaluator->arena, sizeof *cell);
  *cell = evaluate(evaluator, node);
  return (struct place){cell, true};
}

static struct place evaluate_place(struct evaluator *evaluator, const struct syntax *node) {
  struct datum zero = datum_integer(0);
  switch (node->kind) {
  case SYNTAX_VARIABLE:
    if (node->variable->lasting) return lasting_place(evaluator, node->variable);
    return (struct place){&evaluator->activation->slots[node->variable->slot], false};
  case SYNTAX_MEMBER:
    return member_place(evaluator, node);
  case SYNTAX_INDEX: {
    struct datum pointer = evaluate(evaluator, node->parts[0]);
    return pointed_place(evaluator, pointer, evaluate(evaluator, node->parts[1]), node->where);
  }
  case SYNTAX_UNARY:
    if (node->operation == OPERATOR_DEREFERENCE)
      return pointed_place(evaluator, evaluate(evaluator, node->parts[0]), zero, node->where);
    break;
  default:
    break;
  }
  return temporary_place(evaluator, node);
}

/* The value of an index that can be read without evaluating anything again. */
static const char *index_name(struct evaluator *evaluator, const struct syntax *node) {
  while (node->kind == SYNTAX_CAST) node = node->parts[0];
  if (node->kind == SYNTAX_INTEGER) return arena_printf(evaluator->arena, "%lld", (long long)node->integer);
  if (node->kind != SYNTAX_VARIABLE || node->variable->lasting) return "...";
  struct datum datum = evaluator->activation->slots[node->variable->slot];
  return datum.kind == DATUM_INTEGER ? datum_text(evaluator->arena, datum) : "...";
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

static struct datum read_place(struct evaluator *evaluator, const struct syntax *node) {
  struct datum datum = *evaluate_place(evaluator, node).cell;
  if (datum.kind != DATUM_UNSET) return datum;
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

static struct datum *assigned_cell(struct evaluator *evaluator, const struct syntax *node) {
  struct place place = evaluate_place(evaluator, node);
  if (!place.fixed) return place.cell;
  const char *name = name_of(evaluator, node);
  evaluate_fail(evaluator, node->where,
                "a model keeps nothing between calls, and a function that gives tensors changes nothing of its caller: "
                "return the value, several of them in a struct",
                "'%s' cannot be assigned here", name == NULL ? "this" : name);
}

static struct datum assign(struct evaluator *evaluator, const struct syntax *node) {
  const struct syntax *left = node->parts[0];
  struct datum value;
  if (node->operation == OPERATOR_NONE) {
    value = evaluate(evaluator, node->parts[1]);
  } else {
    struct datum old = read_place(evaluator, left);
    value = evaluate_arithmetic(evaluator, node->operation, old, evaluate(evaluator, node->parts[1]), node->where);
  }
  struct datum *cell = assigned_cell(evaluator, left);
  store_datum(evaluator, cell, value, left->type, holder_name(left), node->where);
  return *cell;
}

static struct datum increment(struct evaluator *evaluator, const struct syntax *node) {
  const struct syntax *left = node->parts[0];
  struct datum old = read_place(evaluator, left);
  struct datum *cell = assigned_cell(evaluator, left);
  struct datum new = evaluate_arithmetic(evaluator, OPERATOR_ADD, old, datum_integer(node->integer), node->where);
  store_datum(evaluator, cell, new, left->type, NULL, node->where);
  return node->prefix ? *cell : old;
}

/* ---- Operators ---- */

static struct datum binary(struct evaluator *evaluator, const struct syntax *node) {
  const struct syntax *left = node->parts[0], *right = node->parts[1];
  if (node->operation == OPERATOR_AND)
    return datum_integer(evaluate_truth(evaluator, left) && evaluate_truth(evaluator, right));
  if (node->operation == OPERATOR_OR)
    return datum_integer(evaluate_truth(evaluator, left) || evaluate_truth(evaluator, right));
  struct datum a = evaluate(evaluator, left), b = evaluate(evaluator, right);
  if (node->operation == OPERATOR_COMMA) return b;
  if (a.kind == DATUM_POINTER && b.kind == DATUM_INTEGER &&
      (node->operation == OPERATOR_ADD || node->operation == OPERATOR_SUBTRACT)) {
    int64_t step = node->operation == OPERATOR_ADD ? b.integer : -(b.integer + 1) + 1;
    if (b.integer > a.count || b.integer < -a.count || a.index + step < 0 || a.index + step > a.count)
      evaluate_fail(evaluator, node->where, NULL, "this leaves the array, which has %lld elements", (long long)a.count);
    a.index += step;
    return a;
  }
  return evaluate_arithmetic(evaluator, node->operation, a, b, node->where);
}

static struct datum unary(struct evaluator *evaluator, const struct syntax *node) {
  if (node->operation == OPERATOR_DEREFERENCE) return read_place(evaluator, node);
  if (node->operation == OPERATOR_NOT) return datum_integer(!evaluate_truth(evaluator, node->parts[0]));
  return evaluate_sign(evaluator, node->operation, evaluate(evaluator, node->parts[0]), node->where);
}

/* An array used as a value is a pointer to its first element. */
static struct datum decay(struct evaluator *evaluator, const struct syntax *node) {
  struct place place = evaluate_place(evaluator, node->parts[0]);
  if (place.cell->kind == DATUM_POINTER) return *place.cell;
  if (place.cell->kind != DATUM_AGGREGATE)
    evaluate_fail(evaluator, node->where, NULL, "this array is read before it is declared");
  struct datum pointer = {.kind = DATUM_POINTER, .fixed = place.fixed};
  pointer.items = place.cell->items;
  pointer.count = place.cell->count;
  return pointer;
}

static struct datum cast(struct evaluator *evaluator, const struct syntax *node) {
  const struct syntax *inner = node->parts[0];
  if (ctype_of(node->type) == CTYPE_POINTER && ctype_of(inner->type) == CTYPE_ARRAY) return decay(evaluator, node);
  return convert_datum(evaluator, evaluate(evaluator, inner), node->type, node->where);
}

static struct datum index_value(struct evaluator *evaluator, const struct syntax *node) {
  if (ctype_of(node->parts[0]->type) != CTYPE_STRING) return read_place(evaluator, node);
  struct datum text = evaluate(evaluator, node->parts[0]), offset = evaluate(evaluator, node->parts[1]);
  if (offset.kind != DATUM_INTEGER || offset.integer < 0 || offset.integer > (int64_t)strlen(text.string))
    evaluate_fail(evaluator, node->where, NULL, "index %s is outside the string \"%s\"",
                  datum_text(evaluator->arena, offset), text.string);
  return datum_integer(text.string[offset.integer]);
}

static struct datum expression(struct evaluator *evaluator, const struct syntax *node) {
  const struct outside *outside = subset_outside(node);
  if (outside != NULL) evaluate_fail(evaluator, node->where, outside->help, "a model cannot use %s", outside->what);
  switch (node->kind) {
  case SYNTAX_INTEGER:
    return (struct datum){.kind = DATUM_INTEGER, .type = node->type, .integer = node->integer};
  case SYNTAX_REAL:
    return (struct datum){.kind = DATUM_REAL, .type = node->type, .real = node->real};
  case SYNTAX_STRING:
    return datum_string(string_value(evaluator->arena, node->text));
  case SYNTAX_VARIABLE:
  case SYNTAX_MEMBER:
    return read_place(evaluator, node);
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

struct datum evaluate(struct evaluator *evaluator, const struct syntax *node) {
  evaluate_step(evaluator, node->where, 1);
  if (++evaluator->depth > DEEPEST)
    evaluate_fail(evaluator, node->where, "keep parts of it in variables",
                  "calls and expressions are nested too deeply");
  struct datum datum = expression(evaluator, node);
  evaluator->depth--;
  return datum;
}
