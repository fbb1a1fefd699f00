/* The operations that attention's graphs are made of. */
#ifndef RUNTIME_CUDA_ATTENTION_GRAPH_H
#define RUNTIME_CUDA_ATTENTION_GRAPH_H

#include "include/accel/gpu/attention.h"
#include "runtime/cuda/engine.h"

#include <assert.h>

/* The tensors that a graph is given. */
enum tensor_id {
  T_Q = 1,
  T_K,
  T_V,
  T_Y,
  T_LSE,
  T_D_Y,
  T_D_Q,
  T_D_K,
  T_D_V,
  T_QUERY_LENGTHS,
  T_KEY_LENGTHS, /* of the caller */
  T_ROW_SUMS,
  T_D_Q_SUMS, /* in the workspace */
  T_SCALE,
  T_LEAST,
  T_ONE, /* numbers */
  T_GIVEN
};
static_assert((int)T_GIVEN <= (int)VIRTUAL, "tensors between operations have numbers of their own");

/* [batch][heads][rows][columns] of an operand with such steps. */
struct extent rt_extent_of(int64_t batch, int64_t heads, int64_t rows, int64_t columns,
                           const struct accel_steps *steps);

/* The same memory, with rows and columns the other way round. */
struct extent rt_transposed(struct extent extent);

/* y = a b for all of the batch and heads; rows, columns and depth, where they are not NULL, say how many count. */
void rt_graph_matmul(struct graph *graph, descriptor a, descriptor b, descriptor y, descriptor rows, descriptor columns,
                     descriptor depth);

/* y = x op b, elementwise; b and t may be NULL. `axis` is of GEN_INDEX. `math` is what it is computed in. */
void rt_graph_pointwise(struct graph *graph, cudnnPointwiseMode_t mode, cudnnDataType_t math, descriptor x,
                        descriptor b, descriptor t, descriptor y, int64_t axis);

void rt_graph_reduction(struct graph *graph, cudnnReduceTensorOp_t op, descriptor x, descriptor y);

/* y is the memory of x, seen with y's extent. */
void rt_graph_reshape(struct graph *graph, descriptor x, descriptor y);

#endif
