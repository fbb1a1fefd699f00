#include "runtime/cuda/attention_graph.h"

struct extent rt_extent_of(int64_t batch, int64_t heads, int64_t rows, int64_t columns,
                           const struct accel_steps *steps) {
  return (struct extent){{batch, heads, rows, columns}, {steps->batch, steps->head, steps->row, 1}};
}

struct extent rt_transposed(struct extent e) {
  return (struct extent){{e.length[0], e.length[1], e.length[3], e.length[2]},
                         {e.step[0], e.step[1], e.step[3], e.step[2]}};
}

void rt_graph_matmul(struct graph *graph, descriptor a, descriptor b, descriptor y, descriptor rows, descriptor columns,
                     descriptor depth) {
  descriptor how = rt_describe(graph, CUDNN_BACKEND_MATMUL_DESCRIPTOR);
  rt_set_type(how, CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_DATA_FLOAT);
  rt_finish(how);
  descriptor made = rt_describe(graph, CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR);
  rt_set_descriptor(made, CUDNN_ATTR_OPERATION_MATMUL_DESC, how);
  rt_set_descriptor(made, CUDNN_ATTR_OPERATION_MATMUL_ADESC, a);
  rt_set_descriptor(made, CUDNN_ATTR_OPERATION_MATMUL_BDESC, b);
  rt_set_descriptor(made, CUDNN_ATTR_OPERATION_MATMUL_CDESC, y);
  if (rows != NULL) rt_set_descriptor(made, CUDNN_ATTR_OPERATION_MATMUL_GEMM_M_OVERRIDE_DESC, rows);
  if (columns != NULL) rt_set_descriptor(made, CUDNN_ATTR_OPERATION_MATMUL_GEMM_N_OVERRIDE_DESC, columns);
  if (depth != NULL) rt_set_descriptor(made, CUDNN_ATTR_OPERATION_MATMUL_GEMM_K_OVERRIDE_DESC, depth);
  rt_graph_add(graph, made);
}

void rt_graph_pointwise(struct graph *graph, cudnnPointwiseMode_t mode, cudnnDataType_t math, descriptor x,
                        descriptor b, descriptor t, descriptor y, int64_t axis) {
  descriptor how = rt_describe(graph, CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
  rt_set(how, CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, 1, &mode);
  rt_set_type(how, CUDNN_ATTR_POINTWISE_MATH_PREC, math);
  if (mode == CUDNN_POINTWISE_GEN_INDEX) rt_set(how, CUDNN_ATTR_POINTWISE_AXIS, CUDNN_TYPE_INT64, 1, &axis);
  rt_finish(how);
  descriptor made = rt_describe(graph, CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
  rt_set_descriptor(made, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, how);
  rt_set_descriptor(made, CUDNN_ATTR_OPERATION_POINTWISE_XDESC, x);
  if (b != NULL) rt_set_descriptor(made, CUDNN_ATTR_OPERATION_POINTWISE_BDESC, b);
  if (t != NULL) rt_set_descriptor(made, CUDNN_ATTR_OPERATION_POINTWISE_TDESC, t);
  rt_set_descriptor(made, CUDNN_ATTR_OPERATION_POINTWISE_YDESC, y);
  rt_graph_add(graph, made);
}

void rt_graph_reduction(struct graph *graph, cudnnReduceTensorOp_t op, descriptor x, descriptor y) {
  descriptor how = rt_describe(graph, CUDNN_BACKEND_REDUCTION_DESCRIPTOR);
  rt_set_type(how, CUDNN_ATTR_REDUCTION_COMP_TYPE, CUDNN_DATA_FLOAT);
  rt_set(how, CUDNN_ATTR_REDUCTION_OPERATOR, CUDNN_TYPE_REDUCTION_OPERATOR_TYPE, 1, &op);
  rt_finish(how);
  descriptor made = rt_describe(graph, CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR);
  rt_set_descriptor(made, CUDNN_ATTR_OPERATION_REDUCTION_DESC, how);
  rt_set_descriptor(made, CUDNN_ATTR_OPERATION_REDUCTION_XDESC, x);
  rt_set_descriptor(made, CUDNN_ATTR_OPERATION_REDUCTION_YDESC, y);
  rt_graph_add(graph, made);
}

void rt_graph_reshape(struct graph *graph, descriptor x, descriptor y) {
  descriptor made = rt_describe(graph, CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR);
  rt_set_descriptor(made, CUDNN_ATTR_OPERATION_RESHAPE_XDESC, x);
  rt_set_descriptor(made, CUDNN_ATTR_OPERATION_RESHAPE_YDESC, y);
  rt_graph_add(graph, made);
}
