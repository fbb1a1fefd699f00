/* Sums: kernels over rows that read or write an addition on the way: residual and norm forward, the norm's gradient and
 * the residual's backward. */
#ifndef ACCEL_PLAN_GRAPH_SUMS_H
#define ACCEL_PLAN_GRAPH_SUMS_H

#include "gen/ir/builder.h"

struct rewriter;
struct rewrite;

/* Applies the rules of REWRITE_SUMS (rewrites.h) to all regions of a differentiated graph, also across the iterations
 * of a loop (gen/plan/graph/loop_carried.h). */
void fuse_sums(struct builder *builder);

/* The rules, whose patterns and conditions are in rewrites.c. Each returns true if it has changed the graph. */
bool fuse_sum_before(struct rewriter *rewriter, struct node *node, const struct rewrite *rule);
bool fuse_sum_after(struct rewriter *rewriter, struct node *node, const struct rewrite *rule);
bool fuse_repeated_sum_after(struct rewriter *rewriter, struct node *node, const struct rewrite *rule);
bool fuse_copy_after(struct rewriter *rewriter, struct node *node, const struct rewrite *rule);

#endif
