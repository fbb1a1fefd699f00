/* A convolution is a graph of one operation of cuDNN's, which has one for each of the three that can be made of the
 * other two. */
#include "include/accel/gpu/convolution.h"
#include "runtime/cuda/engine.h"
#include "runtime/gpu/state.h"

enum { X = 1, WEIGHTS, Y };

/* The names of an operation's attributes. */
struct operation {
  cudnnBackendDescriptorType_t type;
  cudnnBackendAttributeName_t alpha, beta, how, x, weights, y;
};

static const struct operation operations[] = {
    [ACCEL_MAKES_Y] = {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
                       CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA,
                       CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
                       CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y},
    [ACCEL_MAKES_X] = {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
                       CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA,
                       CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
                       CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
                       CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY},
    [ACCEL_MAKES_WEIGHTS] = {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
                             CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
                             CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA,
                             CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
                             CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
                             CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
                             CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY},
};

static const cudnnDataType_t types[] = {
    [ACCEL_F32] = CUDNN_DATA_FLOAT, [ACCEL_BF16] = CUDNN_DATA_BFLOAT16, [ACCEL_F16] = CUDNN_DATA_HALF};

static descriptor windows(struct graph *graph, const struct accel_gpu_convolution *c) {
  const cudnnConvolutionMode_t mode = CUDNN_CROSS_CORRELATION;
  const int64_t dimensions = 2;
  descriptor made = rt_describe(graph, CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
  rt_set_type(made, CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_DATA_FLOAT);
  rt_set(made, CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, 1, &mode);
  rt_set(made, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, CUDNN_TYPE_INT64, 1, &dimensions);
  rt_set(made, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, CUDNN_TYPE_INT64, 2, c->stride);
  rt_set(made, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, CUDNN_TYPE_INT64, 2, c->padding);
  rt_set(made, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, CUDNN_TYPE_INT64, 2, c->padding);
  rt_set(made, CUDNN_ATTR_CONVOLUTION_DILATIONS, CUDNN_TYPE_INT64, 2, c->dilation);
  rt_finish(made);
  return made;
}

/* Engines that would not give this convolution's numbers. Tensor cores read float32 as tf32; reductions of reduced
 * precision add up in 16 bits. */
static unsigned avoided(const struct accel_gpu_convolution *c) {
  unsigned notes = 1u << CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION;
  if (c->type == ACCEL_F32) notes |= 1u << CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS;
  if (c->type == ACCEL_F32 && !c->tf32) notes |= 1u << CUDNN_NUMERICAL_NOTE_TENSOR_CORE;
  if (rt_cuda_device()->plan.deterministic) notes |= 1u << CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC;
  return notes;
}

void accel_gpu_open_convolution(struct accel_gpu_convolution *c) {
  static const char cure[] = "generate with devices.convolution: own, or use a newer cuDNN";
  const struct operation *names = &operations[c->makes];
  const cudnnDataType_t type = types[c->type];
  const double alpha = 1.0, beta = c->accumulate ? 1.0 : 0.0;
  struct accel_gpu_engine *engine = rt_engine_new(c->name, cure, c->type == ACCEL_F32 ? 4 : 2);
  struct graph *graph = &engine->graph;
  engine->avoided = avoided(c);
  engine->falls_back = true;
  struct extent x = rt_extent(c->batch, c->x_channels, c->x[0], c->x[1]);
  struct extent y = rt_extent(c->batch, c->y_channels, c->y[0], c->y[1]);
  struct extent weights = rt_extent(c->y_channels, c->x_channels / c->groups, c->kernel[0], c->kernel[1]);
  descriptor how = windows(graph, c), made = rt_describe(graph, names->type);
  rt_set(made, names->alpha, CUDNN_TYPE_DOUBLE, 1, &alpha);
  rt_set(made, names->beta, CUDNN_TYPE_DOUBLE, 1, &beta);
  rt_set_descriptor(made, names->how, how);
  rt_set_descriptor(made, names->x, rt_graph_tensor(graph, X, type, x));
  rt_set_descriptor(made, names->weights, rt_graph_tensor(graph, WEIGHTS, type, weights));
  rt_set_descriptor(made, names->y, rt_graph_tensor(graph, Y, type, y));
  rt_graph_add(graph, made);
  rt_engine_ready(engine);
  c->engine = engine;
}

void accel_gpu_convolve(const struct accel_gpu_convolution *c, accel_stream stream, void *to, const void *a,
                        const void *b) {
  static const struct {
    int to, a, b;
  } tensors[] = {
      [ACCEL_MAKES_Y] = {Y, X, WEIGHTS}, [ACCEL_MAKES_X] = {X, Y, WEIGHTS}, [ACCEL_MAKES_WEIGHTS] = {WEIGHTS, Y, X}};
  const void *values[VIRTUAL] = {0};
  values[tensors[c->makes].to] = to;
  values[tensors[c->makes].a] = a;
  values[tensors[c->makes].b] = b;
  rt_engine_run(c->engine, stream, values);
}
