/* Make: a model's graph as a graph of ONNX, but for the elements of its weights. */
#ifndef ACCEL_ONNX_MAKE_H
#define ACCEL_ONNX_MAKE_H

#include "gen/base/text.h"
#include "gen/ir/graph.h"

/* Sizes at which the graphs are: two batches and two lengths with each other, and one of each that is far from them;
 * what is fixed has one size in all of them. */
enum { ONNX_SIZES = 5, ONNX_OPSET = 20, ONNX_IR_VERSION = 9 };
struct onnx_sizes {
  int64_t batch[ONNX_SIZES], sequence[ONNX_SIZES];
};

/* The numbers of onnx.proto's TensorProto.DataType. */
enum onnx_type { ONNX_FLOAT = 1, ONNX_UINT8 = 2, ONNX_INT32 = 6, ONNX_INT64 = 7, ONNX_BOOL = 9 };

/* A parameter that the graph takes, as float32. */
struct onnx_weight {
  const char *name;
  struct shape shape;
};

struct onnx_graph {
  struct text fields; /* of a GraphProto, all but the weights, which are `initializer`s */
  struct {
    struct onnx_weight *items;
    int count, capacity;
  } weights;
};

/* Whether two graphs differ in numbers alone. */
bool onnx_is_alike(struct arena *arena, const struct graph *a, const struct graph *b);

/* Whether attention sees a window of so many positions somewhere. */
bool onnx_has_window(struct arena *arena, const struct graph *graph, int64_t window);

/* An input by its name in ONNX; `along`: it is [batch][sequence], and int64 there, as all that are integer. */
struct onnx_input {
  const char *name;
  bool along;
  struct shape sample; /* of one that is [batch][sample] in ONNX, an image, and rows in the model; rank 0: it is none */
};

/* Makes it of the graphs at all sizes. `inputs` are in the graph's order; `outputs` the `n_outputs` names of the
 * result, or of its parts along axis 1, which is as long. False with an error: an operation without a rule, one that
 * the sizes change. */
bool onnx_make(struct arena *arena, const struct onnx_sizes *sizes, const struct graph *const graphs[ONNX_SIZES],
               const struct onnx_input *inputs, const char *const *outputs, int n_outputs, struct onnx_graph *made,
               struct diagnostics *diags);

#endif
