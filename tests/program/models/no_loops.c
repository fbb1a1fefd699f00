/* The same as nested_loops.c for two stages of two layers, without a loop. */
#include <accel/model.h>

struct config {
  int stages, depth, width;
};

static tensor layer(scope s, tensor x) {
  return add(x, tanh_of(linear(at(s, "fc"), layer_norm(at(s, "norm"), x), dim(x, -1))));
}

tensor model(scope s, struct config c, tensor tokens, tensor targets) {
  tensor x = embedding(at(s, "e"), tokens, 256, c.width);
  x = layer(at(s, "stage.0.layer.0"), x);
  x = layer(at(s, "stage.0.layer.1"), x);
  x = layer(at(s, "stage.1.layer.0"), x);
  x = layer(at(s, "stage.1.layer.1"), x);
  return cross_entropy(linear(at(s, "out"), x, 256), targets);
}
