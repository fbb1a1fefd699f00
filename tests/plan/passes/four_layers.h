/* A model of four layers alike, which stages can divide. */
#include <accel/model.h>

static tensor layer(scope s, tensor x) {
  return add(x, linear(at(s, "out"), gelu(x), 8));
}

tensor model(scope s, tensor features, tensor labels) {
  tensor x = linear(at(s, "in"), features, 8);
  for (int i = 0; i < 4; i++) x = layer(nth(s, "h", i), x);
  return cross_entropy(linear(at(s, "head"), x, 2), labels);
}
