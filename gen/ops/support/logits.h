/* What operations over logits = x weight share, where a chunk of some rows of these is in memory at a time
 * (gen/ops/linear_cross_entropy.c): nodes with x [..., C], weight [C, V] and a number for each row of x as inputs, and
 * the attributes rows and pitch of a chunk. */
#ifndef ACCEL_OPS_LOGITS_H
#define ACCEL_OPS_LOGITS_H

#include "gen/ops/support/support.h"

/* The columns of logits. */
int64_t op_logits_classes(const struct value *weight);

/* Whether inputs x, weight and targets, by their indices, fit each other; else sets *error. */
int op_logits_check(struct arena *arena, const struct node *node, int x, int weight, int targets, const char **error);

/* The shape of a chunk: rows by pitch. */
struct shape op_logits_chunk(const struct node *node);

/* The types and shapes of the gradients of inputs x and weight, by their indices, and of a chunk, in whose memory they
 * are computed; gives 3, their number. */
int op_logits_infer_gradients(const struct node *node, int x, int weight, struct shape *shapes, enum dtype *dtypes);

/* A matrix as a library of matmuls takes it: one stride is 1, the other one skips at least a whole line. */
bool op_logits_is_matrix(struct shape shape, const int64_t *strides);

/* The matmuls over chunks of x's rows, and of the last chunk those where it has fewer rows. dweight: NULL where the
 * node computes no gradients; makes_logits: whether it computes the logits. Returns how many. */
int op_logits_gemms(const struct node *node, const struct value *x, const struct value *weight,
                    const struct value *dweight, bool makes_logits, struct op_gemm *gemms);

/* The floating-point operations of one matmul over all rows. */
double op_logits_matmul_flops(const struct value *x, const struct value *weight);

/* ---- The reference: that of an operation over all logits ---- */

struct over_logits {
  struct value logits;
  struct value *operands[5];
  struct node node;
};

/* The node of `kind` over the logits that `node` replaces; its operands are to be set. */
struct over_logits *op_over_logits(struct arena *arena, const struct node *node, const char *kind,
                                   const struct value *x, const struct value *weight);

/* x weight: [rows][columns]. */
double *op_logits_multiply(struct arena *arena, const double *x, const double *weight, int64_t rows, int64_t depth,
                           int64_t columns);

/* dx = slopes weight^T and dweight = x^T slopes, into outputs[0] and [1]. */
void op_logits_gradients(const double *slopes, const double *x, const double *weight, int64_t rows, int64_t depth,
                         int64_t columns, double *const *outputs);

/* Sets a chunk, which is workspace, to zeros. */
void op_logits_clear(const struct value *workspace, double *elements);

#endif
