/* Epilogues: rules that let a matmul do what follows it before it writes its result, as far as the device's library
 * can: a bias, gelu with tanh and relu after a matmul, their slopes after a matmul of the backward, and the sum that
 * is a bias's gradient with the matmul that is its weight's. Values do not change, but for the operand of relu's slope,
 * which becomes a mask of bits. */
#ifndef ACCEL_PLAN_GRAPH_EPILOGUES_H
#define ACCEL_PLAN_GRAPH_EPILOGUES_H

#include "gen/ir/op.h"

struct rewriter;
struct rewrite;

/* The rules, whose patterns and conditions are in rewrites.c; the new kind is the matmul's with rule->epilogue added.
 * Each returns true if it has changed the graph. */
bool fuse_bias(struct rewriter *rewriter, struct node *node, const struct rewrite *rule);
bool fuse_gelu(struct rewriter *rewriter, struct node *node, const struct rewrite *rule);
bool fuse_gelu_slope(struct rewriter *rewriter, struct node *node, const struct rewrite *rule);
bool fuse_relu(struct rewriter *rewriter, struct node *node, const struct rewrite *rule);
bool fuse_bias_gradient(struct rewriter *rewriter, struct node *node, const struct rewrite *rule);

#endif
