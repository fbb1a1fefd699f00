/* Layers of which the first one starts from numbers, which need no gradient; in a loop, or written out. */
#include <accel/model.h>

struct config {
  bool looped;
};

static tensor layer(scope s, tensor x) {
  return tanh_of(linear(at(s, "fc"), x, dim(x, -1)));
}

tensor model(scope s, struct config c, tensor tokens, tensor targets) {
  int rows = dim(tokens, 0) * dim(tokens, 1);
  tensor x = constant(0.5, rows, 8);
  if (c.looped)
    for (int i = 0; i < 4; i++) x = tanh_of(linear(at(nth(s, "layer", i), "fc"), x, 8));
  else
    x = layer(at(s, "layer.3"), layer(at(s, "layer.2"), layer(at(s, "layer.1"), layer(at(s, "layer.0"), x))));
  return cross_entropy(linear(at(s, "out"), x, 256), reshape(targets, rows));
}
