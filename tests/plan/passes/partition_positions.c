/* --set devices.per_node=2 --set parallelism.tp=2 --set parallelism.megatron.sequence_parallelism=true */
#include <accel/model.h>

static tensor block(scope s, tensor x) {
  tensor h = gelu(linear(at(s, "up"), layer_norm(at(s, "norm"), x), 16));
  return add(x, dropout(linear(at(s, "down"), h, 8), 0.1));
}

tensor model(scope s, tensor features, tensor labels) {
  tensor x = reshape(linear(at(s, "in"), features, 32), dim(features, 0), 4, 8);
  for (int i = 0; i < 2; i++) x = block(nth(s, "h", i), x);
  return cross_entropy(linear(at(s, "out"), reshape(cumsum(x, 1), dim(x, 0), 32), 2), labels);
}
