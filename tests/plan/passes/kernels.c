#include <accel/model.h>

/* Two matmuls of one shape and one of another. */
tensor model(scope s, tensor features, tensor labels) {
  tensor x = relu(linear(at(s, "a"), features, 4));
  x = relu(linear(at(s, "b"), x, 4));
  return cross_entropy(linear(at(s, "c"), x, 4), labels);
}
