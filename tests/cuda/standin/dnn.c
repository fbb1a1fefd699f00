/* cuDNN's backend interface: descriptors store their attributes, a graph of operations is computed operation by
 * operation in double, each result rounded to its tensor's type. Any graph of the operations below is computed: whether
 * cuDNN has an engine for it is not known here. */
#include "tests/cuda/standin/dnn.h"
#include "tests/cuda/standin/core.h"

#include <cudnn.h>
#include <stdlib.h>
#include <string.h>

enum { ATTRIBUTES = 16, MOST_BYTES = 1024 };

/* What one attribute was set to. */
struct attribute {
  cudnnBackendAttributeName_t name;
  cudnnBackendAttributeType_t type;
  int64_t count;
  char bytes[MOST_BYTES];
};

struct backend {
  cudnnBackendDescriptorType_t type;
  bool is_final;
  struct attribute attributes[ATTRIBUTES];
  int n_attributes;
};

struct cudnnContext {
  cudaStream_t stream;
};

const char *cudnnGetErrorString(cudnnStatus_t status) {
  return status == CUDNN_STATUS_SUCCESS ? "CUDNN_STATUS_SUCCESS" : "CUDNN_STATUS_NOT_SUPPORTED";
}

size_t cudnnGetVersion(void) {
  return (size_t)setting("STANDIN_CUDNN", CUDNN_VERSION);
}

cudnnStatus_t cudnnCreate(cudnnHandle_t *handle) {
  if (call("cudnnCreate")) return CUDNN_STATUS_NOT_INITIALIZED;
  no_capture("cudnnCreate");
  *handle = object_new(DNN_HANDLE, sizeof **handle);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnDestroy(cudnnHandle_t handle) {
  object_end(handle, DNN_HANDLE, "cudnnDestroy");
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream) {
  ((struct cudnnContext *)object_of(handle, DNN_HANDLE, "cudnnSetStream"))->stream = stream;
  return CUDNN_STATUS_SUCCESS;
}

/* ---- Descriptors ---- */

static struct backend *of(cudnnBackendDescriptor_t made, const char *what) {
  return object_of(made, DNN_DESC, what);
}

cudnnStatus_t cudnnBackendCreateDescriptor(cudnnBackendDescriptorType_t type, cudnnBackendDescriptor_t *made) {
  struct backend *own = object_new(DNN_DESC, sizeof *own);
  own->type = type;
  *made = own;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t made) {
  object_end(made, DNN_DESC, "cudnnBackendDestroyDescriptor");
  return CUDNN_STATUS_SUCCESS;
}

static size_t width(cudnnBackendAttributeType_t type) {
  switch (type) {
  case CUDNN_TYPE_BOOLEAN:
    return sizeof(bool);
  case CUDNN_TYPE_INT64:
  case CUDNN_TYPE_DOUBLE:
    return 8;
  case CUDNN_TYPE_HANDLE:
  case CUDNN_TYPE_VOID_PTR:
  case CUDNN_TYPE_BACKEND_DESCRIPTOR:
    return sizeof(void *);
  default:
    return 4;
  }
}

cudnnStatus_t cudnnBackendSetAttribute(cudnnBackendDescriptor_t made, cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type, int64_t count, const void *values) {
  struct backend *own = of(made, "cudnnBackendSetAttribute");
  size_t bytes = (size_t)count * width(type);
  if (own->is_final) fault("cudnnBackendSetAttribute of a descriptor that is finalized");
  if (own->n_attributes == ATTRIBUTES || bytes > MOST_BYTES)
    fault("cudnnBackendSetAttribute: too much for the stand-in");
  struct attribute *at = &own->attributes[own->n_attributes++];
  *at = (struct attribute){name, type, count, {0}};
  memcpy(at->bytes, values, bytes);
  for (int64_t i = 0; i < count && type == CUDNN_TYPE_BACKEND_DESCRIPTOR; i++)
    if (!of(((void *const *)at->bytes)[i], "cudnnBackendSetAttribute")->is_final)
      fault("cudnnBackendSetAttribute to a descriptor that is not finalized");
  return CUDNN_STATUS_SUCCESS;
}

static const struct attribute *find(const struct backend *own, int name) {
  for (int i = 0; i < own->n_attributes; i++)
    if ((int)own->attributes[i].name == name) return &own->attributes[i];
  return NULL;
}

static const struct attribute *need(const struct backend *own, int name) {
  const struct attribute *at = find(own, name);
  if (at == NULL) fault("a descriptor of cuDNN, type %d, without its attribute %d", (int)own->type, name);
  return at;
}

static struct backend *descriptor_at(const struct backend *own, int name, bool is_needed) {
  const struct attribute *at = is_needed ? need(own, name) : find(own, name);
  return at != NULL ? *(struct backend *const *)at->bytes : NULL;
}

static int number_at(const struct backend *own, int name) {
  int value;
  memcpy(&value, need(own, name)->bytes, sizeof value);
  return value;
}

cudnnStatus_t cudnnBackendFinalize(cudnnBackendDescriptor_t made) {
  struct backend *own = of(made, "cudnnBackendFinalize");
  if (own->is_final) fault("cudnnBackendFinalize twice");
  if (own->type == CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR && call("heuristic of cuDNN")) return CUDNN_STATUS_NOT_SUPPORTED;
  if (own->type == CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR && call("plan of cuDNN")) return CUDNN_STATUS_NOT_SUPPORTED;
  own->is_final = true;
  return CUDNN_STATUS_SUCCESS;
}

/* An engine is its graph and which one it is: both are of a configuration too. */
static void give_engine(struct backend *to, cudnnBackendDescriptorType_t type, const struct backend *graph,
                        int64_t which) {
  if (to->type != type) fault("engines are asked for in other descriptors");
  to->attributes[0] = (struct attribute){CUDNN_ATTR_ENGINE_OPERATION_GRAPH, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, {0}};
  to->attributes[1] = (struct attribute){CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, 1, {0}};
  memcpy(to->attributes[0].bytes, &graph, sizeof(void *));
  memcpy(to->attributes[1].bytes, &which, sizeof which);
  to->n_attributes = 2;
  to->is_final = true;
}

static int64_t index_of(const struct backend *engine) {
  int64_t which;
  memcpy(&which, need(engine, CUDNN_ATTR_ENGINE_GLOBAL_INDEX)->bytes, sizeof which);
  return which;
}

static bool convolves(const struct backend *graph) {
  const struct attribute *operations = need(graph, CUDNN_ATTR_OPERATIONGRAPH_OPS);
  cudnnBackendDescriptorType_t type = (*(struct backend *const *)operations->bytes)->type;
  return type == CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR ||
         type == CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR ||
         type == CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR;
}

/* The heuristic's engines are filled in here: those of convolutions in the order in which they are listed, but the
 * plain one, which is to fall back on. */
static void give_engines(const struct backend *heuristic, int64_t wanted, int64_t *found, void *values) {
  const struct backend *graph = descriptor_at(heuristic, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, true);
  bool falls_back = number_at(heuristic, CUDNN_ATTR_ENGINEHEUR_MODE) == CUDNN_HEUR_MODE_FALLBACK;
  int64_t first = convolves(graph) && falls_back ? PLAIN : 0, all = !convolves(graph) ? 2 : falls_back ? 1 : PLAIN;
  *found = wanted < all ? wanted : all;
  for (int64_t i = 0; i < *found; i++)
    give_engine(of(((void **)values)[i], "cudnnBackendGetAttribute"), CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, graph,
                first + i);
}

static void give_note(const struct backend *engine, int64_t *found, void *values) {
  static const cudnnBackendNumericalNote_t notes[] = {
      [DOWN_CONVERTS] = CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS,
      [REDUCES_LOW] = CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION,
      [BY_TENSOR_CORES] = CUDNN_NUMERICAL_NOTE_TENSOR_CORE,
      [VARIES] = CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC,
  };
  int64_t which = index_of(engine);
  *found = which < PLAIN;
  if (*found > 0) *(cudnnBackendNumericalNote_t *)values = notes[which];
}

static int64_t engine_workspace(const struct backend *plan);

cudnnStatus_t cudnnBackendGetAttribute(cudnnBackendDescriptor_t const made, cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type, int64_t wanted, int64_t *found, void *values) {
  const struct backend *own = of(made, "cudnnBackendGetAttribute");
  if (!own->is_final) fault("cudnnBackendGetAttribute of a descriptor that is not finalized");
  if (name == CUDNN_ATTR_ENGINEHEUR_RESULTS && type == CUDNN_TYPE_BACKEND_DESCRIPTOR) {
    give_engines(own, wanted, found, values);
  } else if (name == CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE && type == CUDNN_TYPE_INT64) {
    *(int64_t *)values = engine_workspace(own);
    *found = 1;
  } else if (name == CUDNN_ATTR_ENGINECFG_ENGINE && type == CUDNN_TYPE_BACKEND_DESCRIPTOR && wanted == 1) {
    give_engine(of(*(void **)values, "cudnnBackendGetAttribute"), CUDNN_BACKEND_ENGINE_DESCRIPTOR,
                descriptor_at(own, CUDNN_ATTR_ENGINE_OPERATION_GRAPH, true), index_of(own));
    *found = 1;
  } else if (name == CUDNN_ATTR_ENGINE_NUMERICAL_NOTE && type == CUDNN_TYPE_NUMERICAL_NOTE && wanted > 0) {
    give_note(own, found, values);
  } else {
    fault("cudnnBackendGetAttribute of %d", (int)name);
  }
  return CUDNN_STATUS_SUCCESS;
}

/* ---- From descriptors to operations ---- */

static struct tensor tensor_of(const struct backend *own) {
  struct tensor tensor = {.type = number_at(own, CUDNN_ATTR_TENSOR_DATA_TYPE)};
  memcpy(&tensor.id, need(own, CUDNN_ATTR_TENSOR_UNIQUE_ID)->bytes, sizeof tensor.id);
  memcpy(&tensor.alignment, need(own, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT)->bytes, sizeof tensor.alignment);
  memcpy(tensor.length, need(own, CUDNN_ATTR_TENSOR_DIMENSIONS)->bytes, sizeof tensor.length);
  memcpy(tensor.step, need(own, CUDNN_ATTR_TENSOR_STRIDES)->bytes, sizeof tensor.step);
  tensor.is_virtual = find(own, CUDNN_ATTR_TENSOR_IS_VIRTUAL) != NULL;
  tensor.is_number = find(own, CUDNN_ATTR_TENSOR_IS_BY_VALUE) != NULL;
  return tensor;
}

static void take_tensor(struct operation *to, int slot, const struct backend *from, int name, bool is_needed) {
  const struct backend *tensor = descriptor_at(from, name, is_needed);
  to->has[slot] = tensor != NULL;
  if (tensor != NULL) to->tensors[slot] = tensor_of(tensor);
}

/* The names of a convolution's attributes, of which those of its type are the first. */
struct convolution_names {
  int alpha, beta, how, x, weights, y;
};

static void take_sequences(struct operation *to, const struct backend *from, const struct convolution_names *names,
                           enum slot made) {
  const struct backend *how = descriptor_at(from, names->how, true);
  struct windows *windows = &to->windows;
  to->kind = CONVOLUTION;
  take_tensor(to, X, from, names->x, true);
  take_tensor(to, B, from, names->weights, true);
  take_tensor(to, Y, from, names->y, true);
  windows->made = made;
  memcpy(&windows->alpha, need(from, names->alpha)->bytes, sizeof windows->alpha);
  memcpy(&windows->beta, need(from, names->beta)->bytes, sizeof windows->beta);
  memcpy(windows->stride, need(how, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES)->bytes, sizeof windows->stride);
  memcpy(windows->padding, need(how, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS)->bytes, sizeof windows->padding);
  memcpy(windows->dilation, need(how, CUDNN_ATTR_CONVOLUTION_DILATIONS)->bytes, sizeof windows->dilation);
  if (number_at(how, CUDNN_ATTR_CONVOLUTION_COMP_TYPE) != CUDNN_DATA_FLOAT ||
      number_at(how, CUDNN_ATTR_CONVOLUTION_CONV_MODE) != CUDNN_CROSS_CORRELATION ||
      memcmp(windows->padding, need(how, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS)->bytes, sizeof windows->padding) != 0)
    fault("a convolution of cuDNN that the stand-in does not know");
}

static const struct convolution_names
    forward_names = {CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA,
                     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
                     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,         CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y},
    data_names = {CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA,
                  CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
                  CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,         CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY},
    weights_names = {
        CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA,
        CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
        CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,        CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY};

static struct operation operation_of(const struct backend *from) {
  struct operation to = {.kind = POINTWISE};
  switch (from->type) {
  case CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR: {
    const struct backend *how = descriptor_at(from, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, true);
    to.mode = number_at(how, CUDNN_ATTR_POINTWISE_MODE);
    if (to.mode == CUDNN_POINTWISE_GEN_INDEX) memcpy(&to.axis, need(how, CUDNN_ATTR_POINTWISE_AXIS)->bytes, 8);
    take_tensor(&to, X, from, CUDNN_ATTR_OPERATION_POINTWISE_XDESC, true);
    take_tensor(&to, B, from, CUDNN_ATTR_OPERATION_POINTWISE_BDESC, false);
    take_tensor(&to, T, from, CUDNN_ATTR_OPERATION_POINTWISE_TDESC, false);
    take_tensor(&to, Y, from, CUDNN_ATTR_OPERATION_POINTWISE_YDESC, true);
    break;
  }
  case CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR:
    to.kind = REDUCTION;
    to.mode = number_at(descriptor_at(from, CUDNN_ATTR_OPERATION_REDUCTION_DESC, true), CUDNN_ATTR_REDUCTION_OPERATOR);
    take_tensor(&to, X, from, CUDNN_ATTR_OPERATION_REDUCTION_XDESC, true);
    take_tensor(&to, Y, from, CUDNN_ATTR_OPERATION_REDUCTION_YDESC, true);
    break;
  case CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR:
    to.kind = RESHAPE;
    take_tensor(&to, X, from, CUDNN_ATTR_OPERATION_RESHAPE_XDESC, true);
    take_tensor(&to, Y, from, CUDNN_ATTR_OPERATION_RESHAPE_YDESC, true);
    break;
  case CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR:
    to.kind = MATMUL;
    take_tensor(&to, X, from, CUDNN_ATTR_OPERATION_MATMUL_ADESC, true);
    take_tensor(&to, B, from, CUDNN_ATTR_OPERATION_MATMUL_BDESC, true);
    take_tensor(&to, Y, from, CUDNN_ATTR_OPERATION_MATMUL_CDESC, true);
    take_tensor(&to, ROWS, from, CUDNN_ATTR_OPERATION_MATMUL_GEMM_M_OVERRIDE_DESC, false);
    take_tensor(&to, COLUMNS, from, CUDNN_ATTR_OPERATION_MATMUL_GEMM_N_OVERRIDE_DESC, false);
    take_tensor(&to, DEPTH, from, CUDNN_ATTR_OPERATION_MATMUL_GEMM_K_OVERRIDE_DESC, false);
    break;
  case CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR:
    take_sequences(&to, from, &forward_names, Y);
    break;
  case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR:
    take_sequences(&to, from, &data_names, X);
    break;
  case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR:
    take_sequences(&to, from, &weights_names, B);
    break;
  default:
    fault("an operation of cuDNN of the type %d", (int)from->type);
  }
  return to;
}

static const struct attribute *operations_of(const struct backend *plan) {
  const struct backend *config = descriptor_at(plan, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, true);
  const struct backend *graph = descriptor_at(config, CUDNN_ATTR_ENGINE_OPERATION_GRAPH, true);
  return need(graph, CUDNN_ATTR_OPERATIONGRAPH_OPS);
}

/* Engines of convolutions copy all three, with the channels last. */
static int64_t copied_bytes(const struct operation *op) {
  int64_t bytes = 0;
  for (enum slot slot = X; slot <= Y; slot++) {
    const struct tensor *tensor = &op->tensors[slot];
    int64_t width = tensor->type == CUDNN_DATA_FLOAT ? 4 : 2;
    if (op->has[slot]) bytes += tensor->length[0] * tensor->length[1] * tensor->length[2] * tensor->length[3] * width;
  }
  return bytes;
}

static int64_t up_to(int64_t length, int64_t step) {
  return (length + step - 1) / step * step;
}

/* What engines of attention's gradient take, as cuDNN 9.19 and 9.26 say of graphs for compute capabilities 8.0, 9.0 and
 * 10.0: dq in float32 in registers, from 9.0 on, or in the workspace; where dq is a matmul in one piece all slopes of
 * weights; of heads that are added up, each one. A forward takes next to nothing. */
static int64_t engine_workspace(const struct backend *plan) {
  const struct attribute *operations = operations_of(plan);
  int64_t bytes = 256;
  bool is_backward = false, in_parts = false;
  struct tensor scores = {0}, q = {0};
  for (int64_t i = 0; i < operations->count; i++) {
    struct operation op = operation_of(((struct backend *const *)operations->bytes)[i]);
    const struct tensor *x = &op.tensors[X], *y = &op.tensors[Y];
    if (op.kind == CONVOLUTION) return setting("STANDIN_WORKSPACE", copied_bytes(&op));
    if (op.kind == RESHAPE) is_backward = true;
    if (op.kind == MATMUL && q.id == 0) scores = *y, q = *x;
    if (op.kind == REDUCTION && x->length[1] != y->length[1])
      bytes += 2 * x->length[0] * x->length[1] * x->length[2] * x->length[3];
    if (op.kind == MATMUL && !y->is_virtual && y->type == CUDNN_DATA_FLOAT) in_parts = true;
  }
  const int64_t heads = scores.length[0] * scores.length[1];
  if (is_backward && !in_parts) bytes += 2 * heads * up_to(scores.length[2], 64) * up_to(scores.length[3], 64);
  if (is_backward && in_parts && setting("STANDIN_ARCH", 90) < 90)
    bytes += 4 * heads * up_to(q.length[2], 8) * q.length[3];
  return setting("STANDIN_WORKSPACE", bytes);
}

/* What a graph is executed with, as the work's arguments: operations are kept as long as the process. */
static struct execution *execution_of(const struct backend *plan, const struct backend *pack) {
  const struct attribute *operations = operations_of(plan);
  const struct attribute *ids = need(pack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS);
  const struct attribute *addresses = need(pack, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS);
  struct execution *made = calloc(1, sizeof *made);
  if (made == NULL || operations->count > OPERATIONS || ids->count != addresses->count) fault("a graph of cuDNN");
  made->n_operations = (int)operations->count;
  made->engine = (enum engine)index_of(descriptor_at(plan, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, true));
  for (int64_t i = 0; i < operations->count; i++)
    made->operations[i] = operation_of(((struct backend *const *)operations->bytes)[i]);
  made->n_given = (int)ids->count;
  for (int64_t i = 0; i < ids->count; i++) {
    made->ids[i] = ((const int64_t *)ids->bytes)[i];
    made->addresses[i] = ((void *const *)addresses->bytes)[i];
  }
  memcpy(&made->workspace, need(pack, CUDNN_ATTR_VARIANT_PACK_WORKSPACE)->bytes, sizeof made->workspace);
  made->workspace_bytes = (size_t)engine_workspace(plan);
  return made;
}

static void run(const void *arguments) {
  execution_run(*(struct execution *const *)arguments);
}

cudnnStatus_t cudnnBackendExecute(cudnnHandle_t handle, cudnnBackendDescriptor_t plan, cudnnBackendDescriptor_t pack) {
  const struct cudnnContext *own = object_of(handle, DNN_HANDLE, "cudnnBackendExecute");
  const struct backend *of_plan = of(plan, "cudnnBackendExecute"), *of_pack = of(pack, "cudnnBackendExecute");
  if (!of_plan->is_final || !of_pack->is_final) fault("cudnnBackendExecute of what is not finalized");
  if (call("cudnnBackendExecute")) return CUDNN_STATUS_EXECUTION_FAILED;
  struct execution *execution = execution_of(of_plan, of_pack);
  execution_check(execution);
  submit(own->stream, "cudnnBackendExecute", run, &execution, sizeof execution);
  return CUDNN_STATUS_SUCCESS;
}
