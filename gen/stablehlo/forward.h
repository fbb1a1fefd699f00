/* Forward: a region that takes parameters and inputs, as a module that computes some of its results. */
#ifndef ACCEL_STABLEHLO_FORWARD_H
#define ACCEL_STABLEHLO_FORWARD_H

#include "gen/stablehlo/make.h"
#include "gen/stablehlo/step.h"

struct hlo_forward {
  const struct region *entry;
  const struct hlo_weight *weights; /* all of the program's, as `main` takes them */
  int n_weights;
  const bool *kept; /* of each weight: it is donated, as what the entry leaves in it takes its place; NULL: of none */
  const struct value *const *results; /* of the entry's, in the order in which `main` gives them */
  int n_results;
  int devices;    /* among which weights are divided (exchange.h); 1: they are whole */
  int64_t bucket; /* bytes of them that are one collective */
};

/* Makes the module: `main` takes the weights in their order, also those that the entry does not use, then the inputs.
 * It gives the results, and after them what the entry leaves in each weight that is donated, or what it was. False with
 * an error at the model's line: an operation without a rule. */
bool hlo_make_forward(struct arena *arena, const struct graph *graph, const char *name,
                      const struct hlo_forward *forward, struct hlo_module *made, struct diagnostics *diags);

#endif
