#include <accel/model.h>

tensor model(scope s, tensor features, tensor labels) {
  tensor x = batch_norm(at(s, "bn"), linear(at(s, "in"), features, 4));
  x = add(x, parameter(at(s, "bn"), "running_mean", 4));
  return cross_entropy(x, labels);
}
