/* Evaluation: visits a model's syntax with the job's numbers and calls the builder for what makes tensors. */
#ifndef ACCEL_MODEL_EVALUATE_H
#define ACCEL_MODEL_EVALUATE_H

#include <setjmp.h>

#include "gen/ir/builder.h"
#include "gen/model/cvalue.h"
#include "gen/model/subset.h"

/* A running call of one of the model's functions. */
struct activation {
  struct activation *caller;
  const struct function *function;
  struct location call_site;
  struct cvalue *slots;
  struct cvalue result;
};

struct evaluator {
  struct arena *arena;
  struct diagnostics *diags;
  struct builder *builder;
  const struct tree *program;
  struct activation *activation;
  int n_activations;
  int depth;               /* nesting of evaluation, so that the generator's own stack is bounded */
  int n_loops;             /* loops open in the builder's current region */
  long steps;              /* what was done so far, so that every evaluation ends */
  struct cvalue *statics;  /* the values of the program's variables of static storage */
  struct cvalue predicted; /* what the entry's newest call of 'predict' gave */
  jmp_buf failure;         /* where an error goes, once it is reported */
};

/* An evaluator of a program, nothing of which has run. After an error, and where no graph is taken of it,
 * builder_abandon ends its builder. */
struct evaluator model_evaluator(struct arena *arena, const struct tree *program, struct diagnostics *diags);

/* An lvalue: a value that can be read and assigned. */
struct lvalue {
  struct cvalue *cell;
  bool fixed; /* it cannot be assigned */
};

enum flow { FLOW_NEXT, FLOW_BREAK, FLOW_CONTINUE, FLOW_RETURN };

/* Reports an error with the chain of calls that led there, and ends the evaluation. help may be NULL. */
_Noreturn void evaluate_fail(struct evaluator *evaluator, struct location where, const char *help, const char *format,
                             ...) __attribute__((format(printf, 4, 5)));

/* Ends the evaluation after an error that somebody else reported. */
_Noreturn void evaluate_stop(struct evaluator *evaluator);

/* Counts work; fails when a model takes more than any model does. */
void evaluate_step(struct evaluator *evaluator, struct location where, int64_t cost);

/* The value of an expression. A struct or array is not copied. */
struct cvalue evaluate(struct evaluator *evaluator, const struct syntax *node);

/* Runs a statement. A return leaves its value in the activation. */
enum flow evaluate_statement(struct evaluator *evaluator, const struct syntax *node);

/* A call expression. */
struct cvalue evaluate_call(struct evaluator *evaluator, const struct syntax *node);

/* Whether a known value is true; a tensor is an error. */
bool evaluate_truth(struct evaluator *evaluator, const struct syntax *node);

/* ---- Values ---- */

/* A new variable of a type. zero: numbers are 0 as in a partly initialized struct; otherwise all is unset. */
struct cvalue new_value(struct evaluator *evaluator, const struct type *type, bool zero, struct location where);

/* The value as a type, by C's conversions. A number that does not fit is an error. */
struct cvalue convert_value(struct evaluator *evaluator, struct cvalue value, const struct type *type,
                            struct location where);

/* Writes a value into a cell, and names a tensor after what holds it. */
void store_value(struct evaluator *evaluator, struct cvalue *cell, struct cvalue value, const struct type *type,
                 const char *name, struct location where);

/* The value of `initial` for an object of a type; with `partial`, what the list leaves out stays unset. */
struct cvalue initialize(struct evaluator *evaluator, const struct type *type, const struct syntax *initial,
                         bool partial);

/* The value of a string literal, from its spelling: quotes and escapes, adjacent ones joined. */
const char *string_value(struct arena *arena, const char *spelling);

/* a operation b on numbers, and operation a. */
struct cvalue evaluate_arithmetic(struct evaluator *evaluator, enum operator_kind operation, struct cvalue a,
                                  struct cvalue b, struct location where);
struct cvalue evaluate_sign(struct evaluator *evaluator, enum operator_kind operation, struct cvalue a,
                            struct location where);

/* ---- Calls ---- */

/* Calls a function of the model with values of its parameters' types. */
struct cvalue call_function(struct evaluator *evaluator, const struct function *function,
                            const struct cvalue *arguments, struct location call_site);

/* A function that the reader knows itself: of scopes, shapes, or math.h. */
struct native {
  const char *name;
  struct cvalue (*call)(struct evaluator *evaluator, const struct native *native, const struct syntax *node,
                        const struct cvalue *arguments);
  double (*unary)(double);          /* of math.h */
  double (*binary)(double, double); /* of math.h */
};

/* Fails when `name` cannot be part of a parameter's name. */
void evaluate_check_name(struct evaluator *evaluator, const char *name, struct location where);

/* The same of a parameter, whose full name is written to files of safetensors. */
void evaluate_check_parameter_name(struct evaluator *evaluator, const char *name, struct location where);

extern const struct native natives[];
extern const int native_count;

/* By name; NULL when there is none. */
const struct native *native_find(const char *name);

/* Whether a function is defined in the model's own files; the one of this name, NULL when there is none. */
bool model_owns(const struct function *function);
const struct function *model_function(const struct tree *program, const char *name);

/* Reports every construct and every call outside the subset that `entry` can reach. False when there were any. */
bool check_reachable(struct arena *arena, const struct function *entry, struct diagnostics *diags);

#endif
