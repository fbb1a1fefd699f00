/* What the files share that write a rule (rule.h) as operations on tensors. */
#ifndef ACCEL_EMIT_STABLEHLO_WRITING_H
#define ACCEL_EMIT_STABLEHLO_WRITING_H

#include "gen/c/tree.h"
#include "gen/stablehlo/step.h"

/* Loops over a parameter, as bits: over its matrices, their rows, their columns. */
enum { AXIS_MATRICES = 1, AXIS_ROWS = 2, AXIS_COLUMNS = 4, AXIS_ALL = 7 };

/* A variable: a number, a tensor, or of a pointer the name of an array. */
struct known {
  const struct variable *variable;
  struct hlo tensor;
  const char *array; /* NULL: it is no pointer */
  unsigned axes;     /* loops that it is declared in */
};

/* An array by its name. All of a parameter that is stepped as a whole have three dimensions: its matrices, rows and
 * columns, of extent 1 where an array has one number for all. */
struct array {
  const char *name;
  struct hlo tensor;
};

struct writing {
  struct stablehlo *hlo;
  struct arena *arena;
  struct diagnostics *diags;
  const struct hlo_weight *weight; /* NULL: no parameter is at hand */
  const char *const *number_names;
  const struct hlo *numbers;
  int n_numbers;
  struct hlo factor;
  unsigned axes; /* loops around what is written */
  bool returned, failed;
  struct {
    struct known *items;
    int count, capacity;
  } names;
  struct {
    struct array *items;
    int count, capacity;
  } arrays;
};

/* Reports why the text cannot be written, once. */
void writing_refuse(struct writing *writing, const struct syntax *node, const char *what);

/* ---- Names ---- */

struct known *writing_find(struct writing *writing, const struct variable *variable);
/* What the variable is from here on. */
void writing_set(struct writing *writing, const struct variable *variable, struct hlo tensor);

/* The name of the array that an expression points into; NULL: it is no such expression. */
const char *writing_array_name(struct writing *writing, const struct syntax *node);
struct array *writing_array(struct writing *writing, const char *name);
void writing_set_array(struct writing *writing, const char *name, struct hlo tensor);

/* ---- Expressions ---- */

/* Whether an expression is known when the rule is written, such as `tensor->rows == 0`, and what it is. */
bool writing_constant(struct writing *writing, const struct syntax *node, double *value);

/* What an expression computes; a truth value as 1 or 0. */
struct hlo writing_operand(struct writing *writing, const struct syntax *node);

/* x in the type of C, where that is a floating one. */
struct hlo writing_as(struct writing *writing, struct hlo x, const struct type *type);

/* ---- Statements ---- */

/* A statement of a function: those after a return are left out. */
void writing_statement(struct writing *writing, const struct syntax *statement);

#endif
