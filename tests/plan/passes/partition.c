/* --set devices.per_node=2 --set parallelism.tp=2 */
#include <accel/model.h>

tensor model(scope s, tensor features, tensor labels) {
  tensor x = reshape(linear(at(s, "qkv"), features, 24), dim(features, 0), 1, 24);
  tensor q = transpose(reshape(split(x, 2, 3, 0), dim(x, 0), 1, 2, 4), 1, 2);
  tensor k = transpose(reshape(split(x, 2, 3, 1), dim(x, 0), 1, 2, 4), 1, 2);
  tensor v = transpose(reshape(split(x, 2, 3, 2), dim(x, 0), 1, 2, 4), 1, 2);
  tensor y = reshape(transpose(attention(q, k, v, CAUSAL), 1, 2), dim(x, 0), 8);
  return cross_entropy(linear(at(s, "out"), y, 2), labels);
}
