/* Step: a whole step of training as a module. It runs the micro-batches, adds their gradients up, also over the devices
 * that take the step together, ends the step with the norm and the factor of the gradient, and updates each parameter
 * and what the optimizer keeps of it. These are donated: a result takes the memory of the argument that it is the new
 * value of. */
#ifndef ACCEL_STABLEHLO_STEP_H
#define ACCEL_STABLEHLO_STEP_H

#include "gen/stablehlo/make.h"
#include "gen/stablehlo/stablehlo.h"

/* The optimizer's arithmetic, by the functions of stablehlo.h. */
struct hlo_rule {
  const char *const *arrays; /* the names of what it updates of a parameter: "weights", "moment_1" */
  int n_arrays;
  const char *const *numbers; /* the names of the float32 numbers that it takes of a step: "rate", "keep" */
  int n_numbers;
  bool scales; /* it multiplies gradients by a factor */
  void *context;
  /* The arrays, all of the gradient's shape, become their new values. `factor` is of no meaning unless it scales. */
  void (*update)(void *context, struct stablehlo *hlo, struct hlo gradient, struct hlo factor,
                 const struct hlo *numbers, struct hlo *arrays);
  /* The factor of gradients that have this norm, a float64; asked if it scales. */
  struct hlo (*factor)(void *context, struct stablehlo *hlo, struct hlo norm);
};

/* A parameter that the step has, by its name in checkpoints; `row`: whose numbers its update takes. One that the
 * optimizer does not step, such as a buffer, is changed by what the model assigns to it alone, and of the rule's arrays
 * has the weights and the average. */
struct hlo_weight {
  const char *path;
  struct shape shape;
  enum dtype dtype;
  bool steps;
  int row;
};

struct hlo_step {
  const struct hlo_weight *weights;
  int n_weights;
  int rows;        /* of numbers */
  int micro_steps; /* micro-batches of a step, on each device */
  int devices;     /* that run the step together, each on micro-batches of its own, from the same weights */
  int average;     /* which of the rule's arrays is an average of the weights, or a copy of what is assigned; 0: none */
  struct hlo_rule rule;
};

/* Makes the module of a graph that was differentiated. `main` takes, in this order,
 *   the arrays of the rule, each of all weights that have it in their order, donated;
 *   the inputs of the entry, of several micro-batches with their number as the first dimension;
 *   where a step has several micro-batches, an int32: how many this one has, at most micro_steps;
 *   where the model draws random numbers, their key, an int64, or [micro_steps] of them;
 *   the rule's numbers, [rows][numbers].
 * It gives the loss, a float32 that is the mean over the micro-batches of all devices; the norm of the gradient, a
 * float32; and the new arrays in the order in which it took them. False with an error at the model's line: an operation
 * without a rule.
 */
bool hlo_make_step(struct arena *arena, const struct graph *graph, const char *name, const struct hlo_step *step,
                   struct hlo_module *made, struct diagnostics *diags);

#endif
