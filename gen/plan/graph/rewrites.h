/* Rewrites: the peephole rules of the plan. A rule replaces a pattern of nodes with one node that computes the same.
 * The table is rewrites.c; docs/architecture.md says where each phase runs. */
#ifndef ACCEL_PLAN_GRAPH_REWRITES_H
#define ACCEL_PLAN_GRAPH_REWRITES_H

#include "gen/ir/op.h"

/* The pass that applies a rule. */
enum rewrite_phase {
  REWRITE_LOSS_BACKWARD, /* gen/plan/graph/fused_loss_backward.h: a loss and its gradient */
  REWRITE_EPILOGUES,     /* gen/plan/graph/epilogues.h: a matmul and what follows it, in the device's library */
  REWRITE_SUMS           /* gen/plan/graph/sums.h: a kernel over rows and the addition before or after it */
};

/* A graph that rules are applied to. */
struct rewriter {
  struct graph *graph;
  const int *uses; /* by value id, of the n_values values that the graph had before */
  int n_values;
};

struct rewrite {
  const char *name; /* of its test: tests/plan/rewrites/NAME */
  enum rewrite_phase phase;
  const char *kind;   /* of the node at which the pattern is tried */
  const char *result; /* the kind of the new node; NULL: the matmul's kind with `epilogue` added */
  /* Tries the rule at a node: true if it has changed the graph. NULL: the pass of the phase applies the rule to all
   * nodes together. */
  bool (*apply)(struct rewriter *rewriter, struct node *node, const struct rewrite *rule);
  enum epilogue epilogue; /* that the device's library must offer; EPILOGUE_NONE: nothing of a library */
};

/* Ends with a NULL name. */
extern const struct rewrite rewrites[];

/* The kind that a rule makes; it has a `result`. */
const struct op_kind *rewrite_kind(const struct rewrite *rule);

/* The kind that a rule of `phase` makes of nodes of `kind`; NULL: there is no such rule. */
const struct op_kind *rewrite_result(enum rewrite_phase phase, const struct op_kind *kind);

/* Whether the rule with the function `apply` begins at nodes of `kind`. */
bool rewrite_begins_at(bool (*apply)(struct rewriter *, struct node *, const struct rewrite *),
                       const struct op_kind *kind);

/* Applies the rules of `phase` to all regions of a graph until none applies. `epilogues`: what the device's library
 * offers, as bits of enum epilogue. */
void rewrite_graph(struct graph *graph, enum rewrite_phase phase, unsigned epilogues);

#endif
