/* Differentiate: reverse mode over regions. Every region that depends on a parameter gets a backward region. */
#ifndef ACCEL_PLAN_GRAPH_DIFFERENTIATE_H
#define ACCEL_PLAN_GRAPH_DIFFERENTIATE_H

#include "gen/ir/builder.h"

/* What the gradient of the loss starts from. */
struct seed {
  double constant;   /* where it is known now */
  const char *input; /* where it is not: the name of a scalar that the entry's backward takes for it, its first input */
  struct value *count; /* a scalar of the entry that either is multiplied by; NULL: none */
};

/* Adds backward regions to the builder's graph, callees first, the entry's last (returned). The entry's first
 * result is the loss, a scalar; its gradient starts from `seed`. NULL with an error in the builder's diagnostics when
 * the loss is not a scalar or depends on no parameter.
 *
 * A backward region takes the gradients of the forward region's results, then the gradients so far of inputs that some
 * loop gives to all of its iterations, then those of its inputs that it needs. It gives the gradients of the inputs
 * that depend on parameters; it has added to those so far, so that a loop carries the sum through its iterations. */
struct region *differentiate(struct builder *builder, const struct seed *seed);

#endif
