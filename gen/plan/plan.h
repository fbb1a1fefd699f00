/* Plan: a job and a graph become a program, pass by pass. */
#ifndef ACCEL_PLAN_PLAN_H
#define ACCEL_PLAN_PLAN_H

#include "gen/ir/builder.h"
#include "gen/program/program.h"

/* Runs all passes over the builder's graph, whose entry is the model. NULL with errors in `diags`.
 * tuning: what was measured of kernels, by which the plan chooses among their variants; NULL: nothing.
 * peeled: loops whose first iterations are peeled off; NULL: none. plan_least (solve.h) finds which should be.
 * dump, when not NULL, names the pass after which the IR is put into *dumped. */
struct program *plan(struct builder *builder, const struct job *job, enum program_kind kind,
                     const struct tuning *tuning, const struct peeled_loops *peeled, struct diagnostics *diags,
                     const char *dump, const char **dumped);

/* The name of pass number `index`, in order; NULL after the last one. */
const char *pass_name(int index);

#endif
