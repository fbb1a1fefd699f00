#include <accel/model.h>

tensor model(scope s, tensor features, tensor labels) {
  tensor x = relu(linear(at(s, "in"), features, 40));
  return cross_entropy(linear(at(s, "out"), relu(linear(at(s, "mid"), x, 40)), 2), labels);
}
