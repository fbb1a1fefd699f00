/* Tree: the order in which gradients of a step's micro-batches add up, where it must not depend on how these are
 * divided into ranks and accumulation (parallelism.reproducible: topology). */
#ifndef ACCEL_PLAN_RANKS_TREE_H
#define ACCEL_PLAN_RANKS_TREE_H

#include "gen/program/program.h"

/* Numbers in which ranks add up the squares of their parts' gradients: ACCEL_SQUARES of the runtime. */
enum { TREE_SQUARES = 65 };

/* Fills program->ranks.tree and program->ranks.collectives. False with an error where the
 * micro-batches make no such tree, or where the model has numbers that follow from their order.
 *
 * With M micro-batches a step, a power of two, i and i + M / 2 are added first, then what is M / 4 apart, and
 * neighbours last. Micro-batch n of rank r of R is i = n R + r, so that what is R or more apart is on one rank: it adds
 * depth first and keeps one partial sum for each level. The rest is between ranks, by halves: of what two exchange each
 * adds up one half (Rabenseifner, "Optimization of Collective Reduction Operations", ICCS 2004). a + b is b + a, so it
 * does not matter who adds. */
bool plan_tree(struct program *program, struct diagnostics *diags);

/* Adds the sums of losses to program->ranks.collectives. */
void tree_losses(struct program *program);

/* Sums that begin with a bucket, one after the other, and are waited for together. */
int tree_sums(const struct program *program);

/* The collectives of a bucket of gradients that is sent to other ranks as soon as it is complete, one along each axis,
 * in `list`; how many. */
int tree_bucket(const struct program *program, int bucket, struct collective *list);

/* The plan's line about it: what the order costs; "" without one. */
const char *tree_text(const struct program *program);

#endif
