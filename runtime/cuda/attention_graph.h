/* Graphs of cuDNN's operations, by its backend interface: tensors and operations are added one by one, then the graph
 * is made ready with an engine. */
#ifndef RUNTIME_CUDA_ATTENTION_GRAPH_H
#define RUNTIME_CUDA_ATTENTION_GRAPH_H

#include "runtime/cuda/attention.h"

#include <cudnn.h>

/* The tensors that a graph is given; what lies between operations has numbers from VIRTUAL on. */
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
  T_VIRTUAL
};

typedef cudnnBackendDescriptor_t descriptor;

/* The shape of a tensor and its steps. */
struct extent {
  int64_t length[4], step[4];
};

struct graph {
  const char *name;
  cudnnDataType_t io; /* of what the caller gives */
  descriptor made[160], tensors[160], operations[64];
  int n_made, n_operations;
  int64_t next; /* the number of the next virtual tensor */
};

struct extent rt_extent(int64_t a, int64_t b, int64_t c, int64_t d);
struct extent rt_extent_of(int64_t batch, int64_t heads, int64_t rows, int64_t columns,
                           const struct accel_steps *steps);
struct extent rt_transposed(struct extent extent);

/* Adds a tensor in memory, a number that the host gives, or what lies between operations. */
descriptor rt_graph_tensor(struct graph *graph, enum tensor_id id, cudnnDataType_t type, struct extent extent);
descriptor rt_graph_number(struct graph *graph, enum tensor_id id);
descriptor rt_graph_between(struct graph *graph, cudnnDataType_t type, struct extent extent);

/* y = a b for all of the batch and heads; rows, columns and depth, where they are not NULL, say how many count. */
void rt_graph_product(struct graph *graph, descriptor a, descriptor b, descriptor y, descriptor rows,
                      descriptor columns, descriptor depth);

/* y = x op b, elementwise; b and t may be NULL. `axis` is of GEN_INDEX. `math` is what it is computed in. */
void rt_graph_pointwise(struct graph *graph, cudnnPointwiseMode_t mode, cudnnDataType_t math, descriptor x,
                        descriptor b, descriptor t, descriptor y, int64_t axis);

void rt_graph_reduction(struct graph *graph, cudnnReduceTensorOp_t op, descriptor x, descriptor y);

/* y is the memory of x, seen with y's extent. */
void rt_graph_reshape(struct graph *graph, descriptor x, descriptor y);

/* A graph with the engine that runs it. */
struct accel_cuda_engine {
  struct graph graph;
  descriptor plan;
  size_t workspace, own; /* bytes: of the engine, and of tensors in the workspace before it */
  size_t cleared;        /* bytes of T_D_Q_SUMS that are to be zero when it begins */
  int32_t *lengths; /* of queries and keys of all samples, on the device, where the caller gives none; may be NULL */
  float scale, least, one;
  struct accel_cuda_engine *next;
};

/* Makes cuDNN ready, once. */
void rt_attention_open(void);

/* Makes a graph ready whose operations are all there; engine->own bytes of the workspace are its tensors. Ends
 * the process where no engine runs it in the rest. */
void rt_graph_ready(struct accel_cuda_engine *engine);

/* Runs it. values[id] is where a tensor lies, NULL: it has none. */
void rt_graph_run(const struct accel_cuda_engine *engine, accel_stream stream, const void *const values[T_VIRTUAL]);

#endif
