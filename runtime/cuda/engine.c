#include "runtime/cuda/engine.h"

#include "runtime/gpu/state.h"
#include "runtime/process/fail.h"

#include <stdlib.h>
#include <string.h>

static cudnnHandle_t handle;
static struct accel_gpu_engine *engines;

static void check(cudnnStatus_t status, const char *call, int line) {
  if (status == CUDNN_STATUS_SUCCESS) return;
  struct refusal refusal = {"cuDNN", call, __FILE__, line, "status", cudnnGetErrorString(status)};
  rt_refused(&refusal, "CUDNN_LOGLEVEL_DBG=2 in the environment makes cuDNN say more");
}
#define CHECK(call) check((call), #call, __LINE__)

static void close_engines(void) {
  while (engines != NULL) {
    struct accel_gpu_engine *gone = engines;
    engines = gone->next;
    for (int i = gone->graph.n_made - 1; i >= 0; i--) CHECK(cudnnBackendDestroyDescriptor(gone->graph.made[i]));
    RT_CUDA(cudaFree(gone->lengths));
    free(gone);
  }
  CHECK(cudnnDestroy(handle));
  handle = NULL;
}

static void open_library(void) {
  if (handle != NULL) return;
  CHECK(cudnnCreate(&handle));
  rt_cuda_close_engines = close_engines;
}

struct accel_gpu_engine *rt_engine_new(const char *name, const char *cure, int64_t alignment) {
  struct accel_gpu_engine *engine = calloc(1, sizeof *engine);
  open_library();
  if (engine == NULL) {
    struct problem problem;
    rt_problem(&problem, "no memory for %s", name);
    rt_fail(&problem, 1);
  }
  engine->graph.name = name;
  engine->graph.cure = cure;
  engine->graph.alignment = alignment;
  return engine;
}

/* ---- Descriptors ---- */

descriptor rt_describe(struct graph *graph, cudnnBackendDescriptorType_t type) {
  descriptor made;
  CHECK(cudnnBackendCreateDescriptor(type, &made));
  if (graph->n_made == sizeof graph->made / sizeof *graph->made) {
    struct problem problem;
    rt_problem(&problem, "the graph of %s is larger than there is space for", graph->name);
    rt_fail(&problem, 1);
  }
  graph->made[graph->n_made++] = made;
  return made;
}

void rt_set(descriptor of, cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, int64_t count,
            const void *values) {
  CHECK(cudnnBackendSetAttribute(of, name, type, count, values));
}

void rt_set_descriptor(descriptor of, cudnnBackendAttributeName_t name, descriptor value) {
  rt_set(of, name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &value);
}

void rt_set_type(descriptor of, cudnnBackendAttributeName_t name, cudnnDataType_t type) {
  rt_set(of, name, CUDNN_TYPE_DATA_TYPE, 1, &type);
}

void rt_finish(descriptor made) {
  CHECK(cudnnBackendFinalize(made));
}

/* ---- Tensors ---- */

struct extent rt_extent(int64_t a, int64_t b, int64_t c, int64_t d) {
  return (struct extent){{a, b, c, d}, {b * c * d, c * d, d, 1}};
}

static descriptor tensor(struct graph *graph, int64_t id, cudnnDataType_t type, const struct extent *extent,
                         cudnnBackendAttributeName_t kind) {
  const bool yes = true;
  descriptor made = rt_describe(graph, CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  rt_set_type(made, CUDNN_ATTR_TENSOR_DATA_TYPE, type);
  rt_set(made, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, 4, extent->length);
  rt_set(made, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, 4, extent->step);
  rt_set(made, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 1, &id);
  rt_set(made, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, 1, &graph->alignment);
  if (kind != CUDNN_ATTR_TENSOR_UNIQUE_ID) rt_set(made, kind, CUDNN_TYPE_BOOLEAN, 1, &yes);
  rt_finish(made);
  return made;
}

descriptor rt_graph_tensor(struct graph *graph, int id, cudnnDataType_t type, struct extent extent) {
  return graph->tensors[id] = tensor(graph, id, type, &extent, CUDNN_ATTR_TENSOR_UNIQUE_ID);
}

descriptor rt_graph_number(struct graph *graph, int id) {
  const struct extent one = rt_extent(1, 1, 1, 1);
  return graph->tensors[id] = tensor(graph, id, CUDNN_DATA_FLOAT, &one, CUDNN_ATTR_TENSOR_IS_BY_VALUE);
}

descriptor rt_graph_between(struct graph *graph, cudnnDataType_t type, struct extent extent) {
  return tensor(graph, VIRTUAL + graph->next++, type, &extent, CUDNN_ATTR_TENSOR_IS_VIRTUAL);
}

void rt_graph_add(struct graph *graph, descriptor operation) {
  rt_finish(operation);
  graph->operations[graph->n_operations++] = operation;
}

/* ---- Engines ---- */

/* Versions of cuDNN 9 say that handles are not needed there, and the earlier ones need them. */
static const cudnnBackendAttributeName_t graph_handle = (cudnnBackendAttributeName_t)800;
static const cudnnBackendAttributeName_t plan_handle = (cudnnBackendAttributeName_t)400;

static descriptor whole(struct graph *graph) {
  descriptor made = rt_describe(graph, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
  rt_set(made, graph_handle, CUDNN_TYPE_HANDLE, 1, &handle);
  rt_set(made, CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, graph->n_operations, graph->operations);
  rt_finish(made);
  return made;
}

/* The notes on an engine's numbers, as bits. */
static unsigned notes_of(struct graph *graph, descriptor config) {
  descriptor found = rt_describe(graph, CUDNN_BACKEND_ENGINE_DESCRIPTOR);
  cudnnBackendNumericalNote_t notes[CUDNN_NUMERICAL_NOTE_TYPE_COUNT];
  int64_t count = 0;
  unsigned bits = 0;
  CHECK(
      cudnnBackendGetAttribute(config, CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &count, &found));
  CHECK(cudnnBackendGetAttribute(found, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE,
                                 CUDNN_NUMERICAL_NOTE_TYPE_COUNT, &count, notes));
  for (int64_t i = 0; i < count && i < CUDNN_NUMERICAL_NOTE_TYPE_COUNT; i++) bits |= 1u << notes[i];
  return bits;
}

/* The plan of one engine; NULL: it does not fit, or not this GPU. */
static descriptor plan_of(struct accel_gpu_engine *engine, descriptor config, size_t available) {
  struct graph *graph = &engine->graph;
  if (engine->avoided != 0 && (notes_of(graph, config) & engine->avoided) != 0) return NULL;
  descriptor plan = rt_describe(graph, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
  int64_t bytes = 0, count = 0;
  rt_set(plan, plan_handle, CUDNN_TYPE_HANDLE, 1, &handle);
  rt_set_descriptor(plan, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, config);
  if (cudnnBackendFinalize(plan) != CUDNN_STATUS_SUCCESS) return NULL;
  CHECK(cudnnBackendGetAttribute(plan, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64, 1, &count, &bytes));
  if ((size_t)bytes <= available) {
    engine->workspace = (size_t)bytes;
    return plan;
  }
  if (engine->workspace == 0 || (size_t)bytes < engine->workspace) engine->workspace = (size_t)bytes;
  return NULL;
}

enum { MOST_ENGINES = 48 };

/* The engines of a heuristic, best first. */
static int64_t engines_of(struct graph *graph, descriptor operations, cudnnBackendHeurMode_t mode,
                          descriptor configs[MOST_ENGINES]) {
  int64_t found = 0;
  descriptor heuristic = rt_describe(graph, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
  rt_set_descriptor(heuristic, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, operations);
  rt_set(heuristic, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, &mode);
  if (cudnnBackendFinalize(heuristic) != CUDNN_STATUS_SUCCESS) return 0;
  for (int i = 0; i < MOST_ENGINES; i++) configs[i] = rt_describe(graph, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
  cudnnStatus_t status = cudnnBackendGetAttribute(heuristic, CUDNN_ATTR_ENGINEHEUR_RESULTS,
                                                  CUDNN_TYPE_BACKEND_DESCRIPTOR, MOST_ENGINES, &found, configs);
  if (status != CUDNN_STATUS_SUCCESS) return 0;
  return found < MOST_ENGINES ? found : MOST_ENGINES;
}

_Noreturn static void no_engine(const struct accel_gpu_engine *engine, size_t available) {
  struct problem problem;
  if (engine->workspace > 0)
    rt_problem(&problem, "cuDNN's engines for %s work in %zu bytes or more, the plan has %zu left for them",
               engine->graph.name, engine->workspace, available);
  else
    rt_problem(&problem, "cuDNN %zu has no engine for %s on this GPU", cudnnGetVersion(), engine->graph.name);
  rt_help(&problem, "%s", engine->graph.cure);
  rt_fail(&problem, 1);
}

void rt_engine_ready(struct accel_gpu_engine *engine) {
  static const cudnnBackendHeurMode_t modes[] = {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK};
  size_t all = rt_cuda_device()->plan.workspace_bytes, available = all > engine->own ? all - engine->own : 0;
  descriptor configs[MOST_ENGINES], operations = whole(&engine->graph);
  if (engine->own > all) engine->workspace = engine->own;
  for (int mode = 0; mode <= engine->falls_back && engine->plan == NULL && engine->own <= all; mode++) {
    int64_t found = engines_of(&engine->graph, operations, modes[mode], configs);
    for (int64_t i = 0; i < found && engine->plan == NULL; i++) engine->plan = plan_of(engine, configs[i], available);
  }
  if (engine->plan == NULL) no_engine(engine, available);
  engine->next = engines;
  engines = engine;
}

void rt_engine_run(const struct accel_gpu_engine *engine, accel_stream stream, const void *const values[VIRTUAL]) {
  char *workspace = rt_cuda_device()->arena + rt_cuda_device()->plan.workspace_offset;
  void *rest = workspace + engine->own, *cleared = (void *)(uintptr_t)values[engine->cleared];
  int64_t ids[VIRTUAL], count = 0;
  const void *addresses[VIRTUAL];
  descriptor pack;
  for (int id = 1; id < VIRTUAL; id++) {
    if (engine->graph.tensors[id] == NULL) continue;
    ids[count] = id;
    addresses[count++] = values[id];
  }
  CHECK(cudnnBackendCreateDescriptor(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, &pack));
  rt_set(pack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, count, ids);
  rt_set(pack, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, count, addresses);
  rt_set(pack, CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, &rest);
  rt_finish(pack);
  if (engine->cleared_bytes > 0) accel_gpu_zero(stream, cleared, engine->cleared_bytes);
  CHECK(cudnnSetStream(handle, stream));
  CHECK(cudnnBackendExecute(handle, engine->plan, pack));
  CHECK(cudnnBackendDestroyDescriptor(pack));
}
