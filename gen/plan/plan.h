/* Plan: a job and a graph become a program, pass by pass. */
#ifndef ACCEL_PLAN_PLAN_H
#define ACCEL_PLAN_PLAN_H

#include "gen/ir/builder.h"
#include "gen/program/program.h"

/* What a plan is of, in addition to the job and the model's graph. */
struct plan_request {
  enum program_kind kind;
  const struct tuning *tuning;       /* measurements by which it chooses among variants of kernels; NULL: none */
  const struct peeled_loops *peeled; /* whose first iterations are peeled off; NULL: none. plan_least (trial.h) finds
                                        which should be */
  /* The model with the batch of an evaluation: a second graph of the same parameters, which becomes the program's
   * second entry. NULL: an evaluation takes the batches of training. */
  struct graph *evaluated;
  bool shows_map;           /* the device map is to be shown, whether a program can run it or not */
  bool ends_differentiated; /* the graph after differentiate is all that is requested, without what nothing uses */
};

/* Runs all passes over the builder's graph, whose entry is the model. NULL with errors in `diags`.
 * dump, when not NULL, names the pass after which the IR is put into *dumped. */
struct program *plan(struct builder *builder, const struct job *job, const struct plan_request *request,
                     struct diagnostics *diags, const char *dump, const char **dumped);

/* The name of pass number `index`, in order; NULL after the last one. */
const char *pass_name(int index);

#endif
