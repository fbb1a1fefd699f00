/* Layers in stages: a loop in a loop. */
#include <accel/model.h>

struct config {
  int stages, depth, width;
};

static tensor layer(scope s, tensor x) {
  return add(x, tanh_of(linear(at(s, "fc"), layer_norm(at(s, "norm"), x), dim(x, -1))));
}

tensor model(scope s, struct config c, tensor tokens, tensor targets) {
  tensor x = embedding(at(s, "e"), tokens, 256, c.width);
  for (int i = 0; i < c.stages; i++)
    for (int k = 0; k < c.depth; k++) x = layer(nth(nth(s, "stage", i), "layer", k), x);
  return cross_entropy(linear(at(s, "out"), x, 256), targets);
}
