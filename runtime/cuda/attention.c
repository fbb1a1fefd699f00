/* Attention as graphs of cuDNN's operations. Its engines know such graphs by their form, which is that of NVIDIA's
 * cudnn-frontend: what computes the same in another order of operations has no engine. */
#include "runtime/cuda/attention_graph.h"

#include "runtime/gpu/state.h"
#include "runtime/process/fail.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>

static const cudnnDataType_t F32 = CUDNN_DATA_FLOAT, I32 = CUDNN_DATA_INT32, BOOL = CUDNN_DATA_BOOLEAN;

/* Numbers of an engine that its tensors are. */
enum { SCALE, LEAST, ONE };

/* What both graphs are made of. */
struct making {
  const struct accel_gpu_attention *a;
  struct accel_gpu_engine *engine;
  struct graph *graph;
  cudnnDataType_t io;         /* of what the caller gives */
  struct extent scores, rows; /* [batch][heads][queries][keys], [batch][heads][queries][1] */
  descriptor query_lengths, key_lengths, least;
};

/* Versions and GPUs of which cudnn-frontend says that attention is wrong there; NULL: it is not. */
static const char *flaw_of(const struct accel_gpu_attention *a, bool is_backward) {
  const struct cuda_device *device = rt_cuda_device();
  size_t version = cudnnGetVersion();
  if (a->type == ACCEL_F32 || version < 90000) return "cuDNN's attention is of 16 bits, from version 9.0 on";
  if (version == 91000 || version == 91001) return "use cuDNN 9.10.2 or later: attention of 9.10.0 and 9.10.1 is wrong";
  if (is_backward && device->plan.deterministic && device->properties.major == 10 && version < 91800)
    return "use cuDNN 9.18 or later: before, no gradient of attention is deterministic on this GPU";
  return NULL;
}

/* Elements from the first query's length to the first key's in whole_lengths. */
static size_t lengths_stride(const struct accel_gpu_attention *a) {
  return rt_cuda_stride((size_t)a->batch * sizeof(int32_t)) / sizeof(int32_t);
}

/* Until 9.15.0 gradients are wrong where keys are no multiple of 128 and no lengths are given (cudnn-frontend, too,
 * gives them then): those of all samples, on the device; NULL: there is no need. */
static int32_t *whole_lengths(const struct accel_gpu_attention *a) {
  if (a->lengths || a->keys % 128 == 0 || cudnnGetVersion() > 91500) return NULL;
  size_t stride = lengths_stride(a), bytes = 2 * stride * sizeof(int32_t);
  int32_t *values = calloc(2 * stride, sizeof *values), *made;
  if (values == NULL) {
    struct problem problem;
    rt_problem(&problem, "no memory for the lengths of %lld samples", (long long)a->batch);
    rt_fail(&problem, 1);
  }
  for (int64_t i = 0; i < a->batch; i++) {
    values[i] = (int32_t)a->queries;
    values[stride + (size_t)i] = (int32_t)a->keys;
  }
  RT_CUDA(cudaMalloc((void **)&made, bytes));
  RT_CUDA(cudaMemcpy(made, values, bytes, cudaMemcpyHostToDevice));
  free(values);
  return made;
}

static const char cure[] = "generate with devices.attention: own, or use a newer cuDNN";

static struct making begin(const struct accel_gpu_attention *a, bool is_backward) {
  struct accel_gpu_engine *engine = rt_engine_new(a->name, cure, 16);
  const char *flaw = flaw_of(a, is_backward);
  struct problem problem;
  if (flaw != NULL) {
    rt_problem(&problem, "attention of %s in %s with cuDNN %zu", a->name, a->type == ACCEL_F32 ? "float32" : "16 bits",
               cudnnGetVersion());
    rt_help(&problem, "%s", flaw);
    rt_fail(&problem, 1);
  }
  engine->numbers[SCALE] = (float)a->scale;
  engine->numbers[LEAST] = cudnnGetVersion() < 91000 ? -FLT_MAX : -INFINITY; /* as engines of that version want it */
  engine->numbers[ONE] = 1.0f;
  struct making m = {a,
                     engine,
                     &engine->graph,
                     a->type == ACCEL_BF16 ? CUDNN_DATA_BFLOAT16 : CUDNN_DATA_HALF,
                     rt_extent(a->batch, a->heads, a->queries, a->keys),
                     rt_extent(a->batch, a->heads, a->queries, 1),
                     NULL,
                     NULL,
                     NULL};
  if (is_backward) engine->lengths = whole_lengths(a);
  if (a->lengths || engine->lengths != NULL) {
    struct extent each = {{a->batch, 1, 1, 1}, {1, 1, 1, 1}};
    m.query_lengths = rt_graph_tensor(m.graph, T_QUERY_LENGTHS, I32, each);
    m.key_lengths = rt_graph_tensor(m.graph, T_KEY_LENGTHS, I32, each);
  }
  if (m.query_lengths != NULL || a->causal) m.least = rt_graph_number(m.graph, T_LEAST);
  return m;
}

static descriptor pointwise(const struct making *m, cudnnPointwiseMode_t mode, descriptor x, descriptor b,
                            struct extent extent) {
  descriptor y = rt_graph_between(m->graph, F32, extent);
  rt_graph_pointwise(m->graph, mode, F32, x, b, NULL, y, 0);
  return y;
}

/* The number of each score's row, or column. */
static descriptor positions(const struct making *m, cudnnDataType_t math, descriptor scores, int64_t axis) {
  descriptor y = rt_graph_between(m->graph, I32, m->scores);
  rt_graph_pointwise(m->graph, CUDNN_POINTWISE_GEN_INDEX, math, scores, NULL, NULL, y, axis);
  return y;
}

static descriptor compare(const struct making *m, cudnnPointwiseMode_t mode, descriptor x, descriptor b) {
  descriptor y = rt_graph_between(m->graph, BOOL, m->scores);
  rt_graph_pointwise(m->graph, mode, BOOL, x, b, NULL, y, 0);
  return y;
}

static descriptor where(const struct making *m, descriptor condition, descriptor scores) {
  descriptor y = rt_graph_between(m->graph, F32, m->scores);
  rt_graph_pointwise(m->graph, CUDNN_POINTWISE_BINARY_SELECT, F32, scores, m->least, condition, y, 0);
  return y;
}

static descriptor without_padding(const struct making *m, descriptor scores) {
  if (m->query_lengths == NULL) return scores;
  descriptor row = positions(m, I32, scores, 2), column = positions(m, I32, scores, 3);
  descriptor row_counts = compare(m, CUDNN_POINTWISE_CMP_LT, row, m->query_lengths);
  descriptor column_counts = compare(m, CUDNN_POINTWISE_CMP_LT, column, m->key_lengths);
  return where(m, compare(m, CUDNN_POINTWISE_LOGICAL_AND, row_counts, column_counts), scores);
}

static descriptor without_later(const struct making *m, descriptor scores) {
  if (!m->a->causal) return scores;
  descriptor row = positions(m, F32, scores, 2), column = positions(m, F32, scores, 3);
  return where(m, compare(m, CUDNN_POINTWISE_CMP_GE, row, column), scores);
}

/* scale Q Kᵀ. */
static descriptor scaled_scores(const struct making *m, descriptor q, descriptor k, descriptor scale) {
  descriptor product = rt_graph_between(m->graph, F32, m->scores);
  rt_graph_matmul(m->graph, q, k, product, m->query_lengths, m->key_lengths, NULL);
  return pointwise(m, CUDNN_POINTWISE_MUL, product, scale, m->scores);
}

static struct extent queries_of(const struct accel_gpu_attention *a, const struct accel_steps *steps) {
  return rt_extent_of(a->batch, a->heads, a->queries, a->head_size, steps);
}

static struct extent keys_of(const struct accel_gpu_attention *a, const struct accel_steps *steps) {
  return rt_extent_of(a->batch, a->groups, a->keys, a->head_size, steps);
}

/* ---- Forward ---- */

/* softmax over keys, and log Σ exp of each row: to lse. The result is of the caller's type, as the matmul wants it. */
static descriptor softmax(const struct making *m, descriptor scores, descriptor lse) {
  descriptor largest = rt_graph_between(m->graph, F32, m->rows), sum = rt_graph_between(m->graph, F32, m->rows);
  rt_graph_reduction(m->graph, CUDNN_REDUCE_TENSOR_MAX, scores, largest);
  descriptor shifted = pointwise(m, CUDNN_POINTWISE_SUB, scores, largest, m->scores);
  descriptor power = pointwise(m, CUDNN_POINTWISE_EXP, shifted, NULL, m->scores);
  rt_graph_reduction(m->graph, CUDNN_REDUCE_TENSOR_ADD, power, sum);
  descriptor logarithm = pointwise(m, CUDNN_POINTWISE_LOG, sum, NULL, m->rows);
  rt_graph_pointwise(m->graph, CUDNN_POINTWISE_ADD, F32, largest, logarithm, NULL, lse, 0);
  descriptor weights = rt_graph_between(m->graph, m->io, m->scores);
  rt_graph_pointwise(m->graph, CUDNN_POINTWISE_DIV, F32, power, sum, NULL, weights, 0);
  return weights;
}

void accel_gpu_open_attention(struct accel_gpu_attention *a) {
  struct making m = begin(a, false);
  cudnnDataType_t io = m.io;
  descriptor q = rt_graph_tensor(m.graph, T_Q, io, queries_of(a, &a->q));
  descriptor k = rt_graph_tensor(m.graph, T_K, io, rt_transposed(keys_of(a, &a->k)));
  descriptor v = rt_graph_tensor(m.graph, T_V, io, keys_of(a, &a->v));
  descriptor y = rt_graph_tensor(m.graph, T_Y, io, queries_of(a, &a->y));
  descriptor lse = rt_graph_tensor(m.graph, T_LSE, F32, m.rows);
  descriptor scores = scaled_scores(&m, q, k, rt_graph_number(m.graph, T_SCALE));
  scores = without_later(&m, without_padding(&m, scores));
  rt_graph_matmul(m.graph, softmax(&m, scores, lse), v, y, m.query_lengths, NULL, m.key_lengths);
  rt_engine_ready(m.engine);
  a->forward = m.engine;
}

/* ---- Backward ---- */

/* Σ over a row of dY · Y, in the workspace. */
static descriptor row_sums(const struct making *m, descriptor d_y, descriptor y) {
  struct extent extent = rt_extent(m->a->batch, m->a->heads, m->a->queries, m->a->head_size);
  descriptor product = rt_graph_between(m->graph, F32, extent), sum = rt_graph_between(m->graph, F32, m->rows);
  descriptor saved = rt_graph_tensor(m->graph, T_ROW_SUMS, F32, m->rows);
  rt_graph_pointwise(m->graph, CUDNN_POINTWISE_MUL, F32, d_y, y, NULL, product, 0);
  rt_graph_reduction(m->graph, CUDNN_REDUCE_TENSOR_ADD, product, sum);
  rt_graph_pointwise(m->graph, CUDNN_POINTWISE_MUL, F32, sum, rt_graph_number(m->graph, T_ONE), NULL, saved, 0);
  m->engine->own += rt_cuda_stride((size_t)(4 * m->a->batch * m->a->heads * m->a->queries));
  return saved;
}

/* to = weightsᵀ values, summed over the heads of a group. */
static void onto_keys(const struct making *m, descriptor weights, descriptor values, descriptor to) {
  struct extent turned = rt_transposed(m->scores);
  descriptor transposed = rt_graph_between(m->graph, m->io, turned);
  rt_graph_reshape(m->graph, weights, transposed);
  if (m->a->heads == m->a->groups) {
    rt_graph_matmul(m->graph, transposed, values, to, m->key_lengths, NULL, m->query_lengths);
    return;
  }
  struct extent extent = rt_extent(m->a->batch, m->a->heads, m->a->keys, m->a->head_size);
  descriptor all = rt_graph_between(m->graph, m->io, extent);
  rt_graph_matmul(m->graph, transposed, values, all, m->key_lengths, NULL, m->query_lengths);
  rt_graph_reduction(m->graph, CUDNN_REDUCE_TENSOR_ADD, all, to);
}

/* dQ = dS K: by sums of parts, faster, or, where runs must be alike, whole. */
static void onto_queries(const struct making *m, descriptor d_scores, descriptor k, descriptor d_q) {
  const struct accel_gpu_attention *a = m->a;
  descriptor keys = rt_graph_between(m->graph, m->io, keys_of(a, &a->k)), to = d_q;
  bool whole = rt_cuda_device()->plan.deterministic;
  rt_graph_reshape(m->graph, k, keys);
  if (!whole) {
    to = rt_graph_tensor(m->graph, T_D_Q_SUMS, F32, rt_extent(a->batch, a->heads, a->queries, a->head_size));
    const size_t bytes = (size_t)(4 * a->batch * a->heads * a->queries * a->head_size);
    m->engine->own += rt_cuda_stride(bytes);
    m->engine->cleared = T_D_Q_SUMS;
    if (cudnnGetVersion() < 90600) m->engine->cleared_bytes = bytes; /* engines of that version add to what is there */
  }
  rt_graph_matmul(m->graph, d_scores, keys, to, m->query_lengths, NULL, m->key_lengths);
  if (!whole) rt_graph_pointwise(m->graph, CUDNN_POINTWISE_IDENTITY, F32, to, NULL, NULL, d_q, 0);
}

void accel_gpu_open_attention_backward(struct accel_gpu_attention *a) {
  struct making m = begin(a, true);
  cudnnDataType_t io = m.io;
  size_t version = cudnnGetVersion();
  descriptor q = rt_graph_tensor(m.graph, T_Q, io, queries_of(a, &a->q));
  descriptor k = rt_graph_tensor(m.graph, T_K, io, rt_transposed(keys_of(a, &a->k)));
  descriptor v = rt_graph_tensor(m.graph, T_V, io, rt_transposed(keys_of(a, &a->v)));
  descriptor y = rt_graph_tensor(m.graph, T_Y, io, queries_of(a, &a->y));
  descriptor lse = rt_graph_tensor(m.graph, T_LSE, F32, m.rows);
  descriptor d_y = rt_graph_tensor(m.graph, T_D_Y, io, queries_of(a, &a->d_y));
  descriptor d_q = rt_graph_tensor(m.graph, T_D_Q, io, queries_of(a, &a->d_q));
  descriptor d_k = rt_graph_tensor(m.graph, T_D_K, io, keys_of(a, &a->d_k));
  descriptor d_v = rt_graph_tensor(m.graph, T_D_V, io, keys_of(a, &a->d_v));
  descriptor scale = rt_graph_number(m.graph, T_SCALE);

  descriptor sums = row_sums(&m, d_y, y);
  descriptor scores = without_padding(&m, scaled_scores(&m, q, k, scale));
  scores = pointwise(&m, CUDNN_POINTWISE_SUB, scores, lse, m.scores);
  if (version < 91000) scores = without_padding(&m, scores); /* as engines of that version want it */
  descriptor weights = pointwise(&m, CUDNN_POINTWISE_EXP, without_later(&m, scores), NULL, m.scores);
  onto_keys(&m, weights, d_y, d_v);

  descriptor d_weights = rt_graph_between(m.graph, F32, m.scores);
  rt_graph_matmul(m.graph, d_y, v, d_weights, m.query_lengths, m.key_lengths, NULL);
  descriptor d_scores = pointwise(&m, CUDNN_POINTWISE_SUB, d_weights, sums, m.scores);
  d_scores = pointwise(&m, CUDNN_POINTWISE_MUL, d_scores, weights, m.scores);
  d_scores = pointwise(&m, CUDNN_POINTWISE_MUL, d_scores, scale, m.scores);
  onto_keys(&m, d_scores, q, d_k);
  onto_queries(&m, d_scores, k, d_q);
  rt_engine_ready(m.engine);
  a->backward = m.engine;
}

/* ---- Running ---- */

static void run(const struct accel_gpu_engine *engine, const struct accel_gpu_attention *a, accel_stream stream,
                const struct accel_attention_data *data) {
  const char *workspace = rt_cuda_device()->arena + rt_cuda_device()->plan.workspace_offset;
  size_t sums = rt_cuda_stride((size_t)(4 * a->batch * a->heads * a->queries));
  const int32_t *whole = engine->lengths;
  const void *values[VIRTUAL] = {
      [T_Q] = data->q,
      [T_K] = data->k,
      [T_V] = data->v,
      [T_Y] = data->y,
      [T_LSE] = data->lse,
      [T_D_Y] = data->d_y,
      [T_D_Q] = data->d_q,
      [T_D_K] = data->d_k,
      [T_D_V] = data->d_v,
      [T_QUERY_LENGTHS] = whole != NULL ? whole : data->query_lengths,
      [T_KEY_LENGTHS] = whole != NULL ? whole + lengths_stride(a) : data->key_lengths,
      [T_ROW_SUMS] = workspace,
      [T_D_Q_SUMS] = workspace + sums,
      [T_SCALE] = &engine->numbers[SCALE],
      [T_LEAST] = &engine->numbers[LEAST],
      [T_ONE] = &engine->numbers[ONE],
  };
  rt_engine_run(engine, stream, values);
}

void accel_gpu_attend(const struct accel_gpu_attention *attention, accel_stream stream,
                      const struct accel_attention_data *data) {
  run(attention->forward, attention, stream, data);
}

void accel_gpu_attend_backward(const struct accel_gpu_attention *attention, accel_stream stream,
                               const struct accel_attention_data *data) {
  run(attention->backward, attention, stream, data);
}
