/* Step: a whole step of training as a module. It runs the micro-batches, adds their gradients up, also over the devices
 * that take the step together, ends the step with the norm and the factor of the gradient, and updates each parameter
 * and what the optimizer keeps of it. These are donated: a result takes the memory of the argument that it is the new
 * value of. */
#ifndef ACCEL_STABLEHLO_STEP_H
#define ACCEL_STABLEHLO_STEP_H

#include "gen/stablehlo/make.h"
#include "gen/stablehlo/stablehlo.h"

/* A parameter that the step has, by its name in checkpoints. One that the optimizer does not step, such as a buffer, is
 * changed by what the model assigns to it alone, and so are its states: its average. */
struct hlo_weight {
  const char *path;
  struct shape shape, part; /* of the model; that of its update, which is of a part where devices divide arrays */
  enum dtype dtype;
  bool steps;
  int rule, row;                   /* which rule steps it, and by which row of the rule's numbers */
  int64_t matrices, rows, columns; /* its last two dimensions, and all before them; 0 where it has fewer than two */
};

/* What outlives a step of a weight: "moment_1". */
struct hlo_state {
  const char *name;
  int weight; /* its position */
  struct shape shape;
  enum dtype dtype; /* float32, or bfloat16: rounded when the rule has computed it */
};

/* A parameter that is updated: `arrays`, the weights and what the optimizer keeps of them under these names, all
 * float32, become their new values. `factor` is of no meaning unless the step scales gradients. */
struct hlo_update {
  const struct hlo_weight *weight;
  struct hlo gradient, factor;
  const struct hlo *numbers; /* as the rule has them */
  const char *const *names;
  struct hlo *arrays;
  int n_arrays;
};

/* The optimizer's arithmetic for some of the parameters, by the functions of stablehlo.h. The update of parameters of
 * one shape is a function of the module. */
struct hlo_rule {
  const char *name;           /* what the names of these functions begin with, after the module's "step." */
  const char *input;          /* what the module calls its numbers */
  const char *const *numbers; /* the names of the float32 numbers that it takes of a step: "rate", "keep" */
  int n_numbers, rows;        /* a row of them for each group of parameters that is treated alike */
  void *context;
  void (*update)(void *context, struct stablehlo *hlo, struct hlo_update *update);
};

/* Rules of one optimizer: that steps elements, and that steps a parameter as a whole. */
enum { HLO_ELEMENTS, HLO_TENSORS, HLO_RULES };

struct hlo_step {
  const struct hlo_weight *weights;
  int n_weights;
  const struct hlo_state *states;
  int n_states;
  int micro_steps; /* micro-batches of a step, on each device */
  int devices;     /* that run the step together, each on micro-batches of its own, from the same weights */
  bool divides_states, divides_weights; /* each device has a part of them (exchange.h); of weights, of states, too */
  int64_t bucket;                       /* bytes of divided tensors that are one collective */
  struct hlo_rule rules[HLO_RULES];     /* those that weights name */
  bool scales;                          /* gradients are multiplied by a factor */
  void *context;
  struct hlo (*factor)(void *context, struct stablehlo *hlo, struct hlo norm); /* of this norm, a float64 */
};

/* Makes the module of a graph that was differentiated. `main` takes, in this order,
 *   the weights and the states, in their order, donated;
 *   the inputs of the entry, of several micro-batches with their number as the first dimension;
 *   where a step has several micro-batches, an int32: how many this one has, at most micro_steps;
 *   where the model draws random numbers, their key, an int64, or [micro_steps] of them;
 *   the numbers of each rule that has any, [rows][numbers].
 * It gives the loss, a float32 that is the mean over the micro-batches of all devices; the norm of the gradient, a
 * float32; and the new arrays in the order in which it took them. An array that is divided among devices is a part,
 * flat; where weights or averages are, the optimizer steps all weights. False with an error at the model's line: an
 * operation without a rule.
 */
bool hlo_make_step(struct arena *arena, const struct graph *graph, const char *name, const struct hlo_step *step,
                   struct hlo_module *made, struct diagnostics *diags);

#endif
