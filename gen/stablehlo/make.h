/* Make: a graph, with its backward where it was differentiated, as a module of StableHLO. */
#ifndef ACCEL_STABLEHLO_MAKE_H
#define ACCEL_STABLEHLO_MAKE_H

#include "gen/base/diag.h"
#include "gen/ir/graph.h"

/* A tensor that `main` takes or gives, by its name. */
struct hlo_operand {
  const char *name;
  struct shape shape;
  enum dtype dtype;
};

struct hlo_module {
  const char *text;
  bool random; /* of a step or an evaluation: it draws random numbers, and takes their key before the rule's numbers */
  struct {
    struct hlo_operand *items;
    int count, capacity;
  } arguments, /* of main: the parameters by their full names, then the inputs of the graph's entry; "key" of random
                  numbers */
      results; /* "loss", and the gradients by the parameters' names; of a graph without a backward, the entry's; then
                  what the model assigns to its buffers, by their names */
};

/* Makes it: a function for each region that the entry reaches, forward and backward, and `main`, which runs the entry
 * and its backward. `name`: the module's. False with an error at the model's line: an operation without a rule. */
bool hlo_make(struct arena *arena, const struct graph *graph, const char *name, struct hlo_module *made,
              struct diagnostics *diags);

#endif
