/* Statements of a rule. A loop over elements is written once, for all of them. */
#include <string.h>

#include "gen/emit/stablehlo/writing.h"
#include "gen/stablehlo/state.h"

static void write_block(struct writing *writing, const struct syntax *block) {
  for (int i = 0; i < block->n_parts && !writing->failed && !writing->returned; i++)
    writing_statement(writing, block->parts[i]);
}

/* ---- Declarations ---- */

/* A whole number that is not known is an index, which arrays do without. */
static void declare(struct writing *writing, const struct variable *variable) {
  const struct syntax *initial = variable->initial;
  double value = 0;
  struct known known = {.variable = variable, .tensor = hlo_number(0), .axes = writing->axes};
  if (variable->type->kind == TYPE_POINTER) {
    known.array = writing_array_name(writing, initial);
    if (known.array == NULL) writing_refuse(writing, initial, "it points to what is no array");
  } else if (variable->type->kind == TYPE_INTEGER && !variable->type->is_bool) {
    if (!writing_constant(writing, initial, &value)) return;
    known.tensor = hlo_number(value);
  } else {
    known.tensor = writing_as(writing, writing_operand(writing, initial), variable->type);
  }
  struct known *old = writing_find(writing, variable); /* of a function that is called again, or of a round */
  if (old != NULL)
    *old = known;
  else
    ARENA_PUSH(writing->arena, writing->names, known);
}

/* ---- Assignments ---- */

/* What a variable gets: of a sum over elements that of the loops which it is not declared in. */
static void assign_variable(struct writing *writing, const struct syntax *node, const struct variable *variable) {
  struct stablehlo *hlo = writing->hlo;
  const struct known *known = writing_find(writing, variable);
  struct hlo value = writing_operand(writing, node->parts[1]);
  if (node->operation == OPERATOR_NONE) {
    writing_set(writing, variable, writing_as(writing, value, variable->type));
    return;
  }
  if (node->operation != OPERATOR_ADD || known == NULL || value.is_number) {
    writing_refuse(writing, node, "it has an assignment of another kind");
    return;
  }
  const unsigned over = writing->axes & ~known->axes;
  struct shape axes = {0};
  for (int k = 0; k < 3; k++)
    if (over & 1U << k) axes.dim[axes.rank++] = k;
  if (value.shape.rank != 3) {
    writing_refuse(writing, node, "it adds up what is no array");
    return;
  }
  value = hlo_reduce(hlo, "add", writing_as(writing, value, variable->type), axes, known->axes != 0);
  const struct hlo before = known->tensor;
  const bool from_zero = before.is_number && before.number == 0;
  writing_set(writing, variable, from_zero ? value : hlo_add(hlo, before, value));
}

static void assign_pointer(struct writing *writing, const struct syntax *node, const struct variable *variable) {
  struct known *known = writing_find(writing, variable);
  const char *name = writing_array_name(writing, node->parts[1]);
  if (known == NULL || name == NULL)
    writing_refuse(writing, node, "it points to what is no array");
  else
    known->array = name;
}

/* x[i] = ..., x[i] += ... */
static void assign_elements(struct writing *writing, const struct syntax *node) {
  const struct syntax *to = node->parts[0];
  const char *name = writing_array_name(writing, to->parts[0]);
  const struct array *array = name != NULL ? writing_array(writing, name) : NULL;
  struct stablehlo *hlo = writing->hlo;
  struct hlo value = writing_operand(writing, node->parts[1]);
  if (name == NULL || (array == NULL && (node->operation != OPERATOR_NONE || value.is_number))) {
    writing_refuse(writing, node, "it assigns to what is no element of an array");
    return;
  }
  if (node->operation == OPERATOR_ADD)
    value = hlo_add(hlo, array->tensor, value);
  else if (node->operation == OPERATOR_SUBTRACT)
    value = hlo_sub(hlo, array->tensor, value);
  else if (node->operation == OPERATOR_MULTIPLY)
    value = hlo_mul(hlo, array->tensor, value);
  else if (node->operation != OPERATOR_NONE)
    writing_refuse(writing, node, "it has an assignment of another kind");
  if (writing->failed) return;
  if (array != NULL) {
    const struct hlo old = array->tensor;
    value = hlo_convert(hlo, hlo_broadcast(hlo, hlo_tensor(hlo, value, old.shape, old.type), old.shape), old.type);
  }
  writing_set_array(writing, name, value);
}

static void write_assignment(struct writing *writing, const struct syntax *node) {
  const struct syntax *to = node->parts[0];
  if (to->kind == SYNTAX_INDEX)
    assign_elements(writing, node);
  else if (to->kind == SYNTAX_VARIABLE && to->variable->type->kind == TYPE_POINTER)
    assign_pointer(writing, node, to->variable);
  else if (to->kind == SYNTAX_VARIABLE)
    assign_variable(writing, node, to->variable);
  else
    writing_refuse(writing, node, "it assigns to what is no element of an array");
}

/* ---- Loops ---- */

/* What a bound is named for says which loops it is one of. */
static unsigned axes_of(const struct syntax *bound) {
  static const struct {
    const char *name;
    unsigned axes;
  } bounds[] = {{"count", AXIS_ALL}, {"matrices", AXIS_MATRICES}, {"rows", AXIS_ROWS}, {"columns", AXIS_COLUMNS}};
  while (bound->kind == SYNTAX_CAST) bound = bound->parts[0];
  const char *name = bound->kind == SYNTAX_MEMBER     ? bound->text
                     : bound->kind == SYNTAX_VARIABLE ? bound->variable->name
                                                      : "";
  for (size_t i = 0; i < sizeof bounds / sizeof *bounds; i++)
    if (strcmp(bounds[i].name, name) == 0) return bounds[i].axes;
  return 0;
}

/* The variable that a loop counts; NULL: it has another form. */
static const struct variable *counter_of(const struct syntax *loop) {
  const struct syntax *first = loop->parts[0], *test = loop->parts[1];
  while (first != NULL && first->kind == SYNTAX_BLOCK && first->n_parts == 1) first = first->parts[0];
  const bool counts = first != NULL && first->kind == SYNTAX_DECLARE && test != NULL && test->kind == SYNTAX_BINARY &&
                      test->operation == OPERATOR_LESS;
  return counts ? first->variable : NULL;
}

/* Over elements, where there are any, or so many rounds. */
static void write_loop(struct writing *writing, const struct syntax *loop) {
  const struct variable *counter = counter_of(loop);
  const struct syntax *bound = counter != NULL ? loop->parts[1]->parts[1] : NULL;
  const unsigned axes = bound != NULL ? axes_of(bound) : 0, around = writing->axes;
  double rounds = 1;
  if (axes != 0) {
    writing_constant(writing, bound, &rounds);
    if (rounds == 0) return;
    writing->axes |= axes;
    writing_statement(writing, loop->parts[3]);
    writing->axes = around;
    return;
  }
  if (bound == NULL || !writing_constant(writing, bound, &rounds)) {
    writing_refuse(writing, loop, "it has a loop over something else");
    return;
  }
  for (int i = 0; i < (int)rounds && !writing->failed; i++) {
    writing_set(writing, counter, hlo_number(i));
    writing_statement(writing, loop->parts[3]);
  }
}

/* ---- Calls ---- */

/* c = a b + beta c of matrices, each of them 'N', or 'T' where it is taken transposed. */
static void write_matmul(struct writing *writing, const struct syntax *call) {
  enum { OF_A = 1, OF_B, A, B, BETA, C };
  double of_a, of_b, beta;
  if (call->n_parts < C + 1 || !writing_constant(writing, call->parts[OF_A], &of_a) ||
      !writing_constant(writing, call->parts[OF_B], &of_b) || !writing_constant(writing, call->parts[BETA], &beta)) {
    writing_refuse(writing, call, "it has a matmul of another kind");
    return;
  }
  const char *names[] = {writing_array_name(writing, call->parts[A]), writing_array_name(writing, call->parts[B]),
                         writing_array_name(writing, call->parts[C])};
  const struct array *a = names[0] != NULL ? writing_array(writing, names[0]) : NULL;
  const struct array *b = names[1] != NULL ? writing_array(writing, names[1]) : NULL;
  const struct array *c = names[2] != NULL && beta != 0 ? writing_array(writing, names[2]) : NULL;
  if (a == NULL || b == NULL || names[2] == NULL || (beta != 0 && c == NULL)) {
    writing_refuse(writing, call, "it multiplies what is no array");
    return;
  }
  struct hlo product = hlo_dot(writing->hlo, a->tensor, b->tensor, 1, of_a == 'N' ? 2 : 1, of_b == 'N' ? 1 : 2);
  if (c != NULL) product = hlo_add(writing->hlo, hlo_mul(writing->hlo, hlo_number(beta), c->tensor), product);
  writing_set_array(writing, names[2], product);
}

/* A function of the text: a pointer that it takes is the array that it is given. */
static void write_call(struct writing *writing, const struct syntax *call) {
  const struct function *function = call->function;
  if (function != NULL && strcmp(function->name, "matmul") == 0) {
    write_matmul(writing, call);
    return;
  }
  if (function == NULL || function->body == NULL || call->n_parts != function->n_parameters + 1) {
    writing_refuse(writing, call, "it calls a function that is not in the text");
    return;
  }
  for (int i = 0; i < function->n_parameters; i++) {
    const struct variable *parameter = function->parameters[i];
    struct known *known = writing_find(writing, parameter);
    const bool is_pointer = parameter->type->kind == TYPE_POINTER;
    const char *name = is_pointer ? writing_array_name(writing, call->parts[i + 1]) : NULL;
    if (name == NULL) {
      writing_refuse(writing, call, "it gives a function what is no array");
      return;
    }
    const struct known bound = {.variable = parameter, .array = name};
    if (known != NULL)
      *known = bound;
    else
      ARENA_PUSH(writing->arena, writing->names, bound);
  }
  write_block(writing, function->body);
  writing->returned = false;
}

/* ---- Statements ---- */

static void write_if(struct writing *writing, const struct syntax *node) {
  double value;
  if (!writing_constant(writing, node->parts[0], &value)) {
    writing_refuse(writing, node, "it has a condition that is not known before it runs");
    return;
  }
  const struct syntax *taken = node->parts[value != 0 ? 1 : 2];
  if (taken != NULL) writing_statement(writing, taken);
}

void writing_statement(struct writing *writing, const struct syntax *statement) {
  if (writing->failed || writing->returned) return;
  switch (statement->kind) {
  case SYNTAX_BLOCK:
    write_block(writing, statement);
    return;
  case SYNTAX_DECLARE:
    if (statement->variable->initial == NULL) break;
    declare(writing, statement->variable);
    return;
  case SYNTAX_ASSIGN:
    write_assignment(writing, statement);
    return;
  case SYNTAX_FOR:
    write_loop(writing, statement);
    return;
  case SYNTAX_IF:
    write_if(writing, statement);
    return;
  case SYNTAX_CALL:
    write_call(writing, statement);
    return;
  case SYNTAX_RETURN:
    writing->returned = true;
    return;
  case SYNTAX_EMPTY:
    return;
  default:
    break;
  }
  writing_refuse(writing, statement, "it has a statement of another kind");
}
