#include "runtime/cuda/attention_graph.h"

#include "runtime/cuda/state.h"

#include <stdlib.h>
#include <string.h>

static cudnnHandle_t handle;
static struct accel_cuda_engine *engines;

static void check(cudnnStatus_t status, const char *call, int line) {
  if (status == CUDNN_STATUS_SUCCESS) return;
  struct refusal refusal = {"cuDNN", call, __FILE__, line, "status", cudnnGetErrorString(status)};
  rt_refused(&refusal, "CUDNN_LOGLEVEL_DBG=2 in the environment makes cuDNN say more");
}
#define CHECK(call) check((call), #call, __LINE__)

/* ---- Descriptors ---- */

static descriptor create(struct graph *graph, cudnnBackendDescriptorType_t type) {
  descriptor made;
  CHECK(cudnnBackendCreateDescriptor(type, &made));
  if (graph->n_made == sizeof graph->made / sizeof *graph->made) {
    struct problem problem;
    rt_problem(&problem, "the graph of %s is larger than there is room for", graph->name);
    rt_fail(&problem, 1);
  }
  graph->made[graph->n_made++] = made;
  return made;
}

static void set(descriptor of, cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, int64_t count,
                const void *values) {
  CHECK(cudnnBackendSetAttribute(of, name, type, count, values));
}

static void set_descriptor(descriptor of, cudnnBackendAttributeName_t name, descriptor value) {
  set(of, name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &value);
}

static void set_type(descriptor of, cudnnBackendAttributeName_t name, cudnnDataType_t type) {
  set(of, name, CUDNN_TYPE_DATA_TYPE, 1, &type);
}

/* ---- Tensors ---- */

struct extent rt_extent(int64_t a, int64_t b, int64_t c, int64_t d) {
  return (struct extent){{a, b, c, d}, {b * c * d, c * d, d, 1}};
}

struct extent rt_extent_of(int64_t batch, int64_t heads, int64_t rows, int64_t columns,
                           const struct accel_steps *steps) {
  return (struct extent){{batch, heads, rows, columns}, {steps->batch, steps->head, steps->row, 1}};
}

struct extent rt_transposed(struct extent e) {
  return (struct extent){{e.length[0], e.length[1], e.length[3], e.length[2]},
                         {e.step[0], e.step[1], e.step[3], e.step[2]}};
}

static descriptor tensor(struct graph *graph, int64_t id, cudnnDataType_t type, const struct extent *extent,
                         cudnnBackendAttributeName_t kind) {
  const int64_t alignment = 16;
  const bool yes = true;
  descriptor made = create(graph, CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  set_type(made, CUDNN_ATTR_TENSOR_DATA_TYPE, type);
  set(made, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, 4, extent->length);
  set(made, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, 4, extent->step);
  set(made, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 1, &id);
  set(made, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, 1, &alignment);
  if (kind != CUDNN_ATTR_TENSOR_UNIQUE_ID) set(made, kind, CUDNN_TYPE_BOOLEAN, 1, &yes);
  CHECK(cudnnBackendFinalize(made));
  return made;
}

descriptor rt_graph_tensor(struct graph *graph, enum tensor_id id, cudnnDataType_t type, struct extent extent) {
  return graph->tensors[id] = tensor(graph, id, type, &extent, CUDNN_ATTR_TENSOR_UNIQUE_ID);
}

descriptor rt_graph_number(struct graph *graph, enum tensor_id id) {
  const struct extent one = rt_extent(1, 1, 1, 1);
  return graph->tensors[id] = tensor(graph, id, CUDNN_DATA_FLOAT, &one, CUDNN_ATTR_TENSOR_IS_BY_VALUE);
}

descriptor rt_graph_between(struct graph *graph, cudnnDataType_t type, struct extent extent) {
  return tensor(graph, T_VIRTUAL + graph->next++, type, &extent, CUDNN_ATTR_TENSOR_IS_VIRTUAL);
}

/* ---- Operations ---- */

static void add(struct graph *graph, descriptor operation) {
  CHECK(cudnnBackendFinalize(operation));
  graph->operations[graph->n_operations++] = operation;
}

void rt_graph_product(struct graph *graph, descriptor a, descriptor b, descriptor y, descriptor rows,
                      descriptor columns, descriptor depth) {
  descriptor how = create(graph, CUDNN_BACKEND_MATMUL_DESCRIPTOR);
  set_type(how, CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_DATA_FLOAT);
  CHECK(cudnnBackendFinalize(how));
  descriptor made = create(graph, CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR);
  set_descriptor(made, CUDNN_ATTR_OPERATION_MATMUL_DESC, how);
  set_descriptor(made, CUDNN_ATTR_OPERATION_MATMUL_ADESC, a);
  set_descriptor(made, CUDNN_ATTR_OPERATION_MATMUL_BDESC, b);
  set_descriptor(made, CUDNN_ATTR_OPERATION_MATMUL_CDESC, y);
  if (rows != NULL) set_descriptor(made, CUDNN_ATTR_OPERATION_MATMUL_GEMM_M_OVERRIDE_DESC, rows);
  if (columns != NULL) set_descriptor(made, CUDNN_ATTR_OPERATION_MATMUL_GEMM_N_OVERRIDE_DESC, columns);
  if (depth != NULL) set_descriptor(made, CUDNN_ATTR_OPERATION_MATMUL_GEMM_K_OVERRIDE_DESC, depth);
  add(graph, made);
}

void rt_graph_pointwise(struct graph *graph, cudnnPointwiseMode_t mode, cudnnDataType_t math, descriptor x,
                        descriptor b, descriptor t, descriptor y, int64_t axis) {
  descriptor how = create(graph, CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
  set(how, CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, 1, &mode);
  set_type(how, CUDNN_ATTR_POINTWISE_MATH_PREC, math);
  if (mode == CUDNN_POINTWISE_GEN_INDEX) set(how, CUDNN_ATTR_POINTWISE_AXIS, CUDNN_TYPE_INT64, 1, &axis);
  CHECK(cudnnBackendFinalize(how));
  descriptor made = create(graph, CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
  set_descriptor(made, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, how);
  set_descriptor(made, CUDNN_ATTR_OPERATION_POINTWISE_XDESC, x);
  if (b != NULL) set_descriptor(made, CUDNN_ATTR_OPERATION_POINTWISE_BDESC, b);
  if (t != NULL) set_descriptor(made, CUDNN_ATTR_OPERATION_POINTWISE_TDESC, t);
  set_descriptor(made, CUDNN_ATTR_OPERATION_POINTWISE_YDESC, y);
  add(graph, made);
}

void rt_graph_reduction(struct graph *graph, cudnnReduceTensorOp_t op, descriptor x, descriptor y) {
  descriptor how = create(graph, CUDNN_BACKEND_REDUCTION_DESCRIPTOR);
  set_type(how, CUDNN_ATTR_REDUCTION_COMP_TYPE, CUDNN_DATA_FLOAT);
  set(how, CUDNN_ATTR_REDUCTION_OPERATOR, CUDNN_TYPE_REDUCTION_OPERATOR_TYPE, 1, &op);
  CHECK(cudnnBackendFinalize(how));
  descriptor made = create(graph, CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR);
  set_descriptor(made, CUDNN_ATTR_OPERATION_REDUCTION_DESC, how);
  set_descriptor(made, CUDNN_ATTR_OPERATION_REDUCTION_XDESC, x);
  set_descriptor(made, CUDNN_ATTR_OPERATION_REDUCTION_YDESC, y);
  add(graph, made);
}

void rt_graph_reshape(struct graph *graph, descriptor x, descriptor y) {
  descriptor made = create(graph, CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR);
  set_descriptor(made, CUDNN_ATTR_OPERATION_RESHAPE_XDESC, x);
  set_descriptor(made, CUDNN_ATTR_OPERATION_RESHAPE_YDESC, y);
  add(graph, made);
}

/* ---- Engines ---- */

static void close_attention(void) {
  while (engines != NULL) {
    struct accel_cuda_engine *gone = engines;
    engines = gone->next;
    for (int i = gone->graph.n_made - 1; i >= 0; i--) CHECK(cudnnBackendDestroyDescriptor(gone->graph.made[i]));
    RT_CUDA(cudaFree(gone->lengths));
    free(gone);
  }
  CHECK(cudnnDestroy(handle));
  handle = NULL;
}

/* Versions of cuDNN 9 say that handles are not needed there, and the earlier ones need them. */
static const cudnnBackendAttributeName_t graph_handle = (cudnnBackendAttributeName_t)800;
static const cudnnBackendAttributeName_t plan_handle = (cudnnBackendAttributeName_t)400;

static descriptor whole(struct graph *graph) {
  descriptor made = create(graph, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
  set(made, graph_handle, CUDNN_TYPE_HANDLE, 1, &handle);
  set(made, CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, graph->n_operations, graph->operations);
  CHECK(cudnnBackendFinalize(made));
  return made;
}

/* The plan of one engine; NULL: it does not fit, or not this GPU. */
static descriptor plan_of(struct accel_cuda_engine *engine, descriptor config, size_t room) {
  struct graph *graph = &engine->graph;
  descriptor plan = create(graph, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
  int64_t bytes = 0, count = 0;
  set(plan, plan_handle, CUDNN_TYPE_HANDLE, 1, &handle);
  set_descriptor(plan, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, config);
  if (cudnnBackendFinalize(plan) != CUDNN_STATUS_SUCCESS) return NULL;
  CHECK(cudnnBackendGetAttribute(plan, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64, 1, &count, &bytes));
  if ((size_t)bytes <= room) {
    engine->workspace = (size_t)bytes;
    return plan;
  }
  if (engine->workspace == 0 || (size_t)bytes < engine->workspace) engine->workspace = (size_t)bytes;
  return NULL;
}

enum { MOST_ENGINES = 8 };

/* The engines of the heuristic, best first. */
static int64_t engines_of(struct graph *graph, descriptor operations, descriptor configs[MOST_ENGINES]) {
  const cudnnBackendHeurMode_t mode = CUDNN_HEUR_MODE_A;
  int64_t found = 0;
  descriptor heuristic = create(graph, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
  set_descriptor(heuristic, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, operations);
  set(heuristic, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, &mode);
  if (cudnnBackendFinalize(heuristic) != CUDNN_STATUS_SUCCESS) return 0;
  for (int i = 0; i < MOST_ENGINES; i++) configs[i] = create(graph, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
  cudnnStatus_t status = cudnnBackendGetAttribute(heuristic, CUDNN_ATTR_ENGINEHEUR_RESULTS,
                                                  CUDNN_TYPE_BACKEND_DESCRIPTOR, MOST_ENGINES, &found, configs);
  if (status != CUDNN_STATUS_SUCCESS) return 0;
  return found < MOST_ENGINES ? found : MOST_ENGINES;
}

_Noreturn static void no_engine(const struct accel_cuda_engine *engine, size_t room) {
  struct problem problem;
  if (engine->workspace > 0)
    rt_problem(&problem, "cuDNN's engines for %s work in %zu bytes or more, the plan has %zu left for them",
               engine->graph.name, engine->workspace, room);
  else
    rt_problem(&problem, "cuDNN %zu has no engine for %s on this GPU", cudnnGetVersion(), engine->graph.name);
  rt_help(&problem, "generate with attention of the program's own kernels, or use a newer cuDNN");
  rt_fail(&problem, 1);
}

void rt_graph_ready(struct accel_cuda_engine *engine) {
  size_t all = rt_cuda_device()->plan.workspace_bytes, room = all > engine->own ? all - engine->own : 0;
  descriptor configs[MOST_ENGINES], operations = whole(&engine->graph);
  int64_t found = engine->own <= all ? engines_of(&engine->graph, operations, configs) : 0;
  if (engine->own > all) engine->workspace = engine->own;
  for (int64_t i = 0; i < found && engine->plan == NULL; i++) engine->plan = plan_of(engine, configs[i], room);
  if (engine->plan == NULL) no_engine(engine, room);
  engine->next = engines;
  engines = engine;
}

void rt_attention_open(void) {
  if (handle != NULL) return;
  CHECK(cudnnCreate(&handle));
  rt_cuda_close_attention = close_attention;
}

void rt_graph_run(const struct accel_cuda_engine *engine, accel_stream stream, const void *const values[T_VIRTUAL]) {
  char *workspace = rt_cuda_device()->arena + rt_cuda_device()->plan.workspace_offset;
  void *rest = workspace + engine->own, *summed = (void *)(uintptr_t)values[T_D_Q_SUMS];
  int64_t ids[T_VIRTUAL], count = 0;
  const void *addresses[T_VIRTUAL];
  descriptor pack;
  for (int id = 1; id < T_VIRTUAL; id++) {
    if (engine->graph.tensors[id] == NULL) continue;
    ids[count] = id;
    addresses[count++] = values[id];
  }
  CHECK(cudnnBackendCreateDescriptor(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, &pack));
  set(pack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, count, ids);
  set(pack, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, count, addresses);
  set(pack, CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, &rest);
  CHECK(cudnnBackendFinalize(pack));
  if (engine->cleared > 0) accel_cuda_zero(stream, summed, engine->cleared);
  CHECK(cudnnSetStream(handle, stream));
  CHECK(cudnnBackendExecute(handle, engine->plan, pack));
  CHECK(cudnnBackendDestroyDescriptor(pack));
}
