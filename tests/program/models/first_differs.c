/* Layers of which the first one has a parameter more; the others in a loop, or written out. */
#include <accel/model.h>

struct config {
  bool looped;
};

static tensor layer(scope s, tensor x) {
  return add(x, tanh_of(linear(at(s, "fc"), x, dim(x, -1))));
}

static tensor first(scope s, tensor x) {
  return mul(layer(s, x), parameter(init_normal(s, 1), "gain", dim(x, -1)));
}

tensor model(scope s, struct config c, tensor tokens, tensor targets) {
  tensor x = first(at(s, "layer.0"), embedding(at(s, "e"), tokens, 256, 12));
  if (c.looped)
    for (int i = 1; i < 4; i++) x = layer(nth(s, "layer", i), x);
  else
    x = layer(at(s, "layer.3"), layer(at(s, "layer.2"), layer(at(s, "layer.1"), x)));
  return cross_entropy(linear(at(s, "out"), x, 256), targets);
}
