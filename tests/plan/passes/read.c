#include <accel/model.h>

static tensor layer(scope s, tensor x) {
  return relu(linear(s, x, 4));
}

tensor model(scope s, tensor features, tensor labels) {
  tensor x = linear(at(s, "in"), features, 4);
  for (int i = 0; i < 2; i++) x = layer(nth(s, "h", i), x);
  return cross_entropy(x, labels);
}
