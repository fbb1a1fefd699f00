#include "gen/emit/stablehlo/rule.h"

#include <string.h>

#include "gen/c/parse.h"

struct rule {
  struct hlo_rule taken; /* what is known outside; its context is this */
  struct arena *arena;
  struct diagnostics *diags;
  const struct function *update, *clip;
  struct syntax *element; /* the body of the loop */
  struct {
    const char **items;
    int count, capacity;
  } arrays, numbers;
  bool failed;
};

/* What the names of a function are while it is written. */
struct known {
  const struct variable *variable;
  struct hlo tensor;
};
struct writing {
  struct rule *rule;
  struct stablehlo *hlo;
  struct {
    struct known *items;
    int count, capacity;
  } names;
};

/* ---- Reading ---- */

static void refuse(struct rule *rule, const struct syntax *node, const char *what) {
  if (rule->failed) return;
  rule->failed = true;
  diag_error(rule->diags, node != NULL ? node->where : (struct location){0},
             "the optimizer's rule cannot be written in StableHLO: %s", what);
}

static bool is_array(const struct variable *variable) {
  return variable->type->kind == TYPE_POINTER && variable->type->element->kind == TYPE_REAL;
}

static bool is_named(const struct variable *variable, const char *name) {
  return strcmp(variable->name, name) == 0;
}

/* Finds the loop's body. */
static bool find_element(struct syntax *node, void *data) {
  struct rule *rule = data;
  if (node->kind == SYNTAX_FOR && rule->element == NULL) rule->element = node->parts[3];
  return true;
}

/* Whether the block declares it: several variables of one declaration are a block, too. */
static bool declares(const struct syntax *block, const struct variable *variable) {
  for (int i = 0; i < block->n_parts; i++) {
    const struct syntax *part = block->parts[i];
    if (part->kind == SYNTAX_DECLARE && part->variable == variable) return true;
    if (part->kind == SYNTAX_BLOCK && declares(part, variable)) return true;
  }
  return false;
}

/* Collects the numbers that the loop uses. */
static bool note_number(struct syntax *node, void *data) {
  struct rule *rule = data;
  if (node->kind == SYNTAX_DECLARE) {
    if (node->variable->initial != NULL) syntax_visit(node->variable->initial, note_number, rule);
    return false;
  }
  if (node->kind == SYNTAX_INDEX) return false;
  if (node->kind != SYNTAX_VARIABLE) return true;
  const struct variable *variable = node->variable;
  if (is_array(variable) || is_named(variable, "factor") || declares(rule->element, variable)) return true;
  for (int i = 0; i < rule->numbers.count; i++)
    if (is_named(variable, rule->numbers.items[i])) return true;
  ARENA_PUSH(rule->arena, rule->numbers, variable->name);
  return true;
}

/* ---- Expressions ---- */

static struct hlo write_expression(struct writing *writing, const struct syntax *node);

static struct hlo *find(struct writing *writing, const struct variable *variable) {
  for (int i = 0; i < writing->names.count; i++)
    if (writing->names.items[i].variable == variable) return &writing->names.items[i].tensor;
  return NULL;
}

static struct hlo known(struct writing *writing, const struct syntax *node) {
  const struct hlo *tensor = find(writing, node->variable);
  if (tensor != NULL) return *tensor;
  refuse(writing->rule, node, "it reads what is neither an array nor a number");
  return hlo_number(0);
}

/* An operand of arithmetic: a truth value as 1 or 0. */
static struct hlo operand(struct writing *writing, const struct syntax *node) {
  const struct hlo x = write_expression(writing, node);
  return !x.is_number && x.type == HLO_BOOL ? hlo_convert(writing->hlo, x, HLO_F32) : x;
}

static double of_numbers(enum operator_kind operation, double a, double b) {
  return operation == OPERATOR_ADD        ? a + b
         : operation == OPERATOR_SUBTRACT ? a - b
         : operation == OPERATOR_MULTIPLY ? a * b
                                          : a / b;
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
  const struct hlo a = operand(writing, node->parts[0]), b = operand(writing, node->parts[1]);
  const bool adds = operation < sizeof operations / sizeof *operations && operations[operation] != NULL;
  const bool compares = operation < sizeof directions / sizeof *directions && directions[operation] != NULL;
  if (adds && a.is_number && b.is_number) return hlo_number(of_numbers(operation, a.number, b.number));
  if (adds) return hlo_binary(writing->hlo, operations[operation], a, b);
  if (compares && !(a.is_number && b.is_number)) return hlo_compare(writing->hlo, directions[operation], a, b);
  refuse(writing->rule, node, "it has an operator of another kind");
  return a;
}

static struct hlo write_call(struct writing *writing, const struct syntax *node) {
  static const struct {
    const char *function, *operation;
  } functions[] = {{"sqrtf", "sqrt"},    {"sqrt", "sqrt"},    {"fabsf", "abs"},     {"fabs", "abs"},
                   {"fmaxf", "maximum"}, {"fmax", "maximum"}, {"fminf", "minimum"}, {"fmin", "minimum"}};
  for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
    if (node->function == NULL || strcmp(node->function->name, functions[i].function) != 0) continue;
    const struct hlo a = operand(writing, node->parts[1]);
    return node->n_parts == 2 ? hlo_unary(writing->hlo, functions[i].operation, a)
                              : hlo_binary(writing->hlo, functions[i].operation, a, operand(writing, node->parts[2]));
  }
  refuse(writing->rule, node, "it calls a function that tensors have no operation for");
  return hlo_number(0);
}

/* A number as a condition is whether it is not zero. */
static struct hlo write_select(struct writing *writing, const struct syntax *node) {
  struct hlo condition = write_expression(writing, node->parts[0]);
  const struct hlo yes = operand(writing, node->parts[1]), no = operand(writing, node->parts[2]);
  if (condition.is_number) return condition.number != 0 ? yes : no;
  if (condition.type != HLO_BOOL) condition = hlo_compare(writing->hlo, "NE", condition, hlo_number(0));
  return hlo_select(writing->hlo, condition, yes, no);
}

/* Of conversions only one between sizes of numbers changes a tensor: double to float. */
static struct hlo write_cast(struct writing *writing, const struct syntax *node) {
  const struct hlo x = write_expression(writing, node->parts[0]);
  const bool to_float = node->type->kind == TYPE_REAL && node->type->size == (int64_t)sizeof(float);
  return to_float && !x.is_number ? hlo_convert(writing->hlo, x, HLO_F32) : x;
}

static struct hlo write_expression(struct writing *writing, const struct syntax *node) {
  switch (node->kind) {
  case SYNTAX_INTEGER:
    return hlo_number((double)node->integer);
  case SYNTAX_REAL:
    return hlo_number(node->real);
  case SYNTAX_VARIABLE:
    return known(writing, node);
  case SYNTAX_INDEX:
    return known(writing, syntax_bare(node->parts[0]));
  case SYNTAX_CAST:
    return write_cast(writing, node);
  case SYNTAX_BINARY:
    return write_binary(writing, node);
  case SYNTAX_CALL:
    return write_call(writing, node);
  case SYNTAX_SELECT:
    return write_select(writing, node);
  case SYNTAX_UNARY:
    if (node->operation == OPERATOR_MINUS)
      return hlo_sub(writing->hlo, hlo_number(0), operand(writing, node->parts[0]));
    break;
  default:
    break;
  }
  refuse(writing->rule, node, "it has an expression of another kind");
  return hlo_number(0);
}

/* ---- Statements ---- */

static void set(struct writing *writing, const struct variable *variable, struct hlo tensor) {
  struct hlo *old = find(writing, variable);
  if (old != NULL) {
    *old = tensor;
    return;
  }
  const struct known known = {variable, tensor};
  ARENA_PUSH(writing->rule->arena, writing->names, known);
}

/* x[i] = ..., x[i] += ... */
static void write_assignment(struct writing *writing, const struct syntax *node) {
  const struct syntax *to = node->parts[0];
  if (to->kind != SYNTAX_INDEX || syntax_bare(to->parts[0])->kind != SYNTAX_VARIABLE) {
    refuse(writing->rule, node, "it assigns to what is no element of an array");
    return;
  }
  const struct variable *array = syntax_bare(to->parts[0])->variable;
  struct hlo value = operand(writing, node->parts[1]);
  if (node->operation == OPERATOR_ADD)
    value = hlo_add(writing->hlo, known(writing, syntax_bare(to->parts[0])), value);
  else if (node->operation == OPERATOR_SUBTRACT)
    value = hlo_sub(writing->hlo, known(writing, syntax_bare(to->parts[0])), value);
  else if (node->operation != OPERATOR_NONE)
    refuse(writing->rule, node, "it has an assignment of another kind");
  set(writing, array, value);
}

static void write_block(struct writing *writing, const struct syntax *block) {
  for (int i = 0; i < block->n_parts && !writing->rule->failed; i++) {
    const struct syntax *statement = block->parts[i];
    if (statement->kind == SYNTAX_BLOCK)
      write_block(writing, statement);
    else if (statement->kind == SYNTAX_DECLARE && statement->variable->initial != NULL)
      set(writing, statement->variable, operand(writing, statement->variable->initial));
    else if (statement->kind == SYNTAX_ASSIGN)
      write_assignment(writing, statement);
    else
      refuse(writing->rule, statement, "it has a statement of another kind");
  }
}

/* ---- What the module asks ---- */

/* Finds names by what the function and its loop call them. */
struct naming {
  struct writing *writing;
  const struct hlo *numbers, *factor;
};

static bool set_number(struct syntax *node, void *data) {
  const struct naming *naming = data;
  const struct rule *rule = naming->writing->rule;
  if (node->kind == SYNTAX_DECLARE && node->variable->initial != NULL)
    syntax_visit(node->variable->initial, set_number, data);
  if (node->kind != SYNTAX_VARIABLE || is_array(node->variable)) return true;
  if (is_named(node->variable, "factor")) set(naming->writing, node->variable, *naming->factor);
  for (int i = 0; i < rule->numbers.count; i++)
    if (is_named(node->variable, rule->numbers.items[i]) && !declares(rule->element, node->variable))
      set(naming->writing, node->variable, naming->numbers[i]);
  return true;
}

static void update(void *context, struct stablehlo *hlo, struct hlo gradient, struct hlo factor,
                   const struct hlo *numbers, struct hlo *arrays) {
  struct rule *rule = context;
  struct writing writing = {.rule = rule, .hlo = hlo};
  struct naming naming = {&writing, numbers, &factor};
  syntax_visit(rule->element, set_number, &naming);
  for (int i = 0, a = 0; i < rule->update->n_parameters; i++) {
    const struct variable *parameter = rule->update->parameters[i];
    if (is_array(parameter)) set(&writing, parameter, is_named(parameter, "gradients") ? gradient : arrays[a++]);
  }
  write_block(&writing, rule->element);
  for (int i = 0, a = 0; i < rule->update->n_parameters; i++) {
    const struct variable *parameter = rule->update->parameters[i];
    if (is_array(parameter) && !is_named(parameter, "gradients")) arrays[a++] = *find(&writing, parameter);
  }
}

static struct hlo factor(void *context, struct stablehlo *hlo, struct hlo norm) {
  struct rule *rule = context;
  struct writing writing = {.rule = rule, .hlo = hlo};
  set(&writing, rule->clip->parameters[0], norm);
  return write_expression(&writing, rule->clip->body->parts[0]->parts[0]);
}

const struct hlo_rule *rule_read(struct arena *arena, const char *text, struct diagnostics *diags) {
  static const char *const flags[] = {"-std=c17"};
  const struct parse_request request = {.file = "rule.c", .text = text, .flags = flags, .n_flags = 1};
  const struct tree *tree = tree_parse(arena, &request, diags);
  struct rule *rule = arena_alloc(arena, sizeof *rule);
  *rule = (struct rule){.arena = arena, .diags = diags};
  if (tree == NULL) return NULL;
  for (int i = 0; i < tree->n_messages && tree_has_errors(tree); i++)
    diag_error(diags, tree->messages[i].where, "%s", tree->messages[i].text);
  if (tree_has_errors(tree)) return NULL;
  rule->update = tree_function(tree, "update");
  rule->clip = tree_function(tree, "clip_factor");
  syntax_visit(rule->update->body, find_element, rule);
  if (rule->element == NULL) refuse(rule, NULL, "it has no loop over elements");
  if (rule->failed) return NULL;
  for (int i = 0; i < rule->update->n_parameters; i++)
    if (is_array(rule->update->parameters[i]) && !is_named(rule->update->parameters[i], "gradients"))
      ARENA_PUSH(arena, rule->arrays, rule->update->parameters[i]->name);
  syntax_visit(rule->element, note_number, rule);
  rule->taken = (struct hlo_rule){.arrays = rule->arrays.items,
                                  .n_arrays = rule->arrays.count,
                                  .numbers = rule->numbers.items,
                                  .n_numbers = rule->numbers.count,
                                  .scales = rule->clip != NULL,
                                  .context = rule,
                                  .update = update,
                                  .factor = factor};
  return &rule->taken;
}
