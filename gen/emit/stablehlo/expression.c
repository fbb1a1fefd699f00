/* Expressions of a rule. */
#include <math.h>
#include <string.h>

#include "gen/emit/stablehlo/writing.h"

void writing_refuse(struct writing *writing, const struct syntax *node, const char *what) {
  if (writing->failed) return;
  writing->failed = true;
  diag_error(writing->diags, node != NULL ? node->where : (struct location){0},
             "the optimizer's rule cannot be written in StableHLO: %s", what);
}

/* ---- Names ---- */

struct known *writing_find(struct writing *writing, const struct variable *variable) {
  for (int i = 0; i < writing->names.count; i++)
    if (writing->names.items[i].variable == variable) return &writing->names.items[i];
  return NULL;
}

void writing_set(struct writing *writing, const struct variable *variable, struct hlo tensor) {
  struct known *old = writing_find(writing, variable);
  if (old != NULL) {
    old->tensor = tensor;
    return;
  }
  const struct known known = {.variable = variable, .tensor = tensor, .axes = writing->axes};
  ARENA_PUSH(writing->arena, writing->names, known);
}

struct array *writing_array(struct writing *writing, const char *name) {
  for (int i = 0; i < writing->arrays.count; i++)
    if (strcmp(writing->arrays.items[i].name, name) == 0) return &writing->arrays.items[i];
  return NULL;
}

void writing_set_array(struct writing *writing, const char *name, struct hlo tensor) {
  struct array *old = writing_array(writing, name);
  if (old != NULL) {
    old->tensor = tensor;
    return;
  }
  const struct array array = {name, tensor};
  ARENA_PUSH(writing->arena, writing->arrays, array);
}

/* A pointer is known by the array that it was set to, or is one by its own name; sums move it within the array. */
const char *writing_array_name(struct writing *writing, const struct syntax *node) {
  while (node->kind == SYNTAX_CAST || (node->kind == SYNTAX_BINARY && node->operation == OPERATOR_ADD))
    node = node->parts[0];
  if (node->kind == SYNTAX_MEMBER) return node->text;
  if (node->kind != SYNTAX_VARIABLE) return NULL;
  const struct known *known = writing_find(writing, node->variable);
  return known != NULL && known->array != NULL ? known->array : node->variable->name;
}

static const struct hlo *number_named(const struct writing *writing, const char *name) {
  for (int i = 0; i < writing->n_numbers; i++)
    if (strcmp(writing->number_names[i], name) == 0) return &writing->numbers[i];
  return strcmp(name, "factor") == 0 ? &writing->factor : NULL;
}

/* A variable, a member of the parameter's row, or an array as a whole, of which the index names an element. */
static struct hlo read(struct writing *writing, const struct syntax *node) {
  const bool is_variable = node->kind == SYNTAX_VARIABLE;
  const struct known *known = is_variable ? writing_find(writing, node->variable) : NULL;
  if (known != NULL && known->array == NULL) return known->tensor;
  const struct hlo *number =
      node->kind == SYNTAX_INDEX ? NULL : number_named(writing, is_variable ? node->variable->name : node->text);
  if (number != NULL) return writing->weight != NULL ? writing_as(writing, *number, node->type) : *number;
  const char *name = node->kind == SYNTAX_INDEX ? writing_array_name(writing, node->parts[0]) : NULL;
  const struct array *array = name != NULL ? writing_array(writing, name) : NULL;
  if (array != NULL) return array->tensor;
  writing_refuse(writing, node, "it reads what is neither an array nor a number");
  return hlo_number(0);
}

/* ---- What is known when the rule is written ---- */

static bool extent(const struct writing *writing, const char *name, double *value) {
  const struct hlo_weight *weight = writing->weight;
  if (weight == NULL) return false;
  const struct {
    const char *name;
    int64_t extent;
  } extents[] = {{"count", shape_count(weight->shape)},
                 {"matrices", weight->matrices},
                 {"rows", weight->rows},
                 {"columns", weight->columns}};
  for (size_t i = 0; i < sizeof extents / sizeof *extents; i++) {
    *value = (double)extents[i].extent;
    if (strcmp(extents[i].name, name) == 0) return true;
  }
  return false;
}

static bool of_numbers(enum operator_kind operation, double a, double b, double *value) {
  switch (operation) {
  case OPERATOR_ADD:
    *value = a + b;
    return true;
  case OPERATOR_SUBTRACT:
    *value = a - b;
    return true;
  case OPERATOR_MULTIPLY:
    *value = a * b;
    return true;
  case OPERATOR_DIVIDE:
    *value = a / b;
    return b != 0;
  case OPERATOR_LESS:
    *value = a < b;
    return true;
  case OPERATOR_LESS_EQUAL:
    *value = a <= b;
    return true;
  case OPERATOR_GREATER:
    *value = a > b;
    return true;
  case OPERATOR_GREATER_EQUAL:
    *value = a >= b;
    return true;
  case OPERATOR_EQUAL:
    *value = a == b;
    return true;
  default:
    return false;
  }
}

static bool of_call(const char *function, double a, double b, double *value) {
  *value = strcmp(function, "sqrt") == 0 ? sqrt(a) : strcmp(function, "fmax") == 0 ? fmax(a, b) : fmin(a, b);
  return strcmp(function, "sqrt") == 0 || strcmp(function, "fmax") == 0 || strcmp(function, "fmin") == 0;
}

bool writing_constant(struct writing *writing, const struct syntax *node, double *value) {
  double a, b = 0;
  const struct known *known;
  switch (node->kind) {
  case SYNTAX_INTEGER:
    *value = (double)node->integer;
    return true;
  case SYNTAX_REAL:
    *value = node->real;
    return true;
  case SYNTAX_VARIABLE:
    known = writing_find(writing, node->variable);
    if (known != NULL && known->array == NULL && known->tensor.is_number) *value = known->tensor.number;
    return known != NULL && known->array == NULL && known->tensor.is_number;
  case SYNTAX_MEMBER:
    return extent(writing, node->text, value);
  case SYNTAX_CAST:
    return writing_constant(writing, node->parts[0], value);
  case SYNTAX_UNARY:
    if (node->operation != OPERATOR_MINUS || !writing_constant(writing, node->parts[0], &a)) return false;
    *value = -a;
    return true;
  case SYNTAX_BINARY:
    return writing_constant(writing, node->parts[0], &a) && writing_constant(writing, node->parts[1], &b) &&
           of_numbers(node->operation, a, b, value);
  case SYNTAX_SELECT:
    return writing_constant(writing, node->parts[0], &a) &&
           writing_constant(writing, node->parts[a != 0 ? 1 : 2], value);
  case SYNTAX_CALL:
    return node->function != NULL && writing_constant(writing, node->parts[1], &a) &&
           (node->n_parts == 2 || writing_constant(writing, node->parts[2], &b)) &&
           of_call(node->function->name, a, b, value);
  default:
    return false;
  }
}

/* ---- What a step computes ---- */

static struct hlo write_expression(struct writing *writing, const struct syntax *node);

struct hlo writing_as(struct writing *writing, struct hlo x, const struct type *type) {
  if (type->kind != TYPE_REAL) return x;
  return hlo_convert(writing->hlo, x, type->size == (int64_t)sizeof(float) ? HLO_F32 : HLO_F64);
}

struct hlo writing_operand(struct writing *writing, const struct syntax *node) {
  const struct hlo x = write_expression(writing, node);
  return !x.is_number && x.type == HLO_BOOL ? hlo_convert(writing->hlo, x, HLO_F32) : x;
}

static struct hlo condition(struct writing *writing, const struct syntax *node) {
  const struct hlo x = write_expression(writing, node);
  return x.is_number || x.type == HLO_BOOL ? x : hlo_compare(writing->hlo, "NE", x, hlo_number(0));
}

static struct hlo write_binary(struct writing *writing, const struct syntax *node) {
  static const char *const operations[] = {[OPERATOR_ADD] = "add",
                                           [OPERATOR_SUBTRACT] = "subtract",
                                           [OPERATOR_MULTIPLY] = "multiply",
                                           [OPERATOR_DIVIDE] = "divide"};
  static const char *const directions[] = {
      [OPERATOR_LESS] = "LT",          [OPERATOR_GREATER] = "GT", [OPERATOR_LESS_EQUAL] = "LE",
      [OPERATOR_GREATER_EQUAL] = "GE", [OPERATOR_EQUAL] = "EQ",   [OPERATOR_NOT_EQUAL] = "NE"};
  const enum operator_kind operation = node->operation;
  if (operation == OPERATOR_AND)
    return hlo_binary(writing->hlo, "and", condition(writing, node->parts[0]), condition(writing, node->parts[1]));
  const struct hlo a = writing_operand(writing, node->parts[0]), b = writing_operand(writing, node->parts[1]);
  const bool adds = operation < sizeof operations / sizeof *operations && operations[operation] != NULL;
  const bool compares = operation < sizeof directions / sizeof *directions && directions[operation] != NULL;
  double value;
  if (a.is_number && b.is_number && of_numbers(operation, a.number, b.number, &value)) return hlo_number(value);
  if (adds) return hlo_binary(writing->hlo, operations[operation], a, b);
  if (compares) return hlo_compare(writing->hlo, directions[operation], a, b);
  writing_refuse(writing, node, "it has an operator of another kind");
  return a;
}

static struct hlo write_call(struct writing *writing, const struct syntax *node) {
  static const struct {
    const char *function, *operation;
  } functions[] = {{"sqrtf", "sqrt"},    {"sqrt", "sqrt"},     {"fabsf", "abs"},
                   {"fabs", "abs"},      {"fmaxf", "maximum"}, {"fmax", "maximum"},
                   {"fminf", "minimum"}, {"fmin", "minimum"},  {"pow", "power"}};
  const struct hlo *number = node->function != NULL ? number_named(writing, node->function->name) : NULL;
  if (number != NULL) return writing_as(writing, *number, node->type);
  for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
    if (node->function == NULL || strcmp(node->function->name, functions[i].function) != 0) continue;
    const struct hlo a = writing_operand(writing, node->parts[1]);
    return node->n_parts == 2
               ? hlo_unary(writing->hlo, functions[i].operation, a)
               : hlo_binary(writing->hlo, functions[i].operation, a, writing_operand(writing, node->parts[2]));
  }
  writing_refuse(writing, node, "it calls a function that tensors have no operation for");
  return hlo_number(0);
}

/* A number as a condition is whether it is not zero. */
static struct hlo write_select(struct writing *writing, const struct syntax *node) {
  const struct hlo chosen = condition(writing, node->parts[0]);
  if (chosen.is_number) return writing_operand(writing, node->parts[chosen.number != 0 ? 1 : 2]);
  return hlo_select(writing->hlo, chosen, writing_operand(writing, node->parts[1]),
                    writing_operand(writing, node->parts[2]));
}

static struct hlo write_expression(struct writing *writing, const struct syntax *node) {
  double value;
  if (writing->failed) return hlo_number(0);
  if (writing_constant(writing, node, &value)) return hlo_number(value);
  switch (node->kind) {
  case SYNTAX_VARIABLE:
  case SYNTAX_INDEX:
  case SYNTAX_MEMBER:
    return read(writing, node);
  case SYNTAX_CAST:
    return writing_as(writing, write_expression(writing, node->parts[0]), node->type);
  case SYNTAX_BINARY:
    return write_binary(writing, node);
  case SYNTAX_CALL:
    return write_call(writing, node);
  case SYNTAX_SELECT:
    return write_select(writing, node);
  case SYNTAX_UNARY:
    if (node->operation == OPERATOR_MINUS)
      return hlo_sub(writing->hlo, hlo_number(0), writing_operand(writing, node->parts[0]));
    break;
  default:
    break;
  }
  writing_refuse(writing, node, "it has an expression of another kind");
  return hlo_number(0);
}
