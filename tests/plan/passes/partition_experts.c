/* --set devices.per_node=2 --set parallelism.ep=2 */
#include <accel/model.h>

/* Each row of the features goes to one of two experts. */
tensor model(scope s, tensor features, tensor labels) {
  tensor likely = softmax(linear(at(s, "gate"), features, 2)), choices = top_k_indices(likely, 1);
  tensor rows = group_rows(choices, 2, 0), starts = group_starts(choices, 2, 0), in[2], out[2];
  for (int e = 0; e < 2; e++) {
    in[e] = parameter(at(nth(s, "experts", e), "in"), "weight", 8, dim(features, 1));
    out[e] = parameter(at(nth(s, "experts", e), "out"), "weight", 2, 8);
  }
  tensor h = silu(grouped_matmul(take(features, rows), starts, 2, in));
  return cross_entropy(index_add(grouped_matmul(h, starts, 2, out), rows, dim(features, 0)), labels);
}
