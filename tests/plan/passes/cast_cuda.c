/* --set precision.mixed_precision=bf16 --set devices.kind=cuda */
#include <accel/model.h>

tensor model(scope s, tensor features, tensor labels) {
  tensor x = relu(linear(at(s, "in"), features, 4));
  return cross_entropy(linear(at(s, "out"), add(x, layer_norm(at(s, "norm"), x)), 2), labels);
}
