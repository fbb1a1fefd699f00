/* Layers of two kinds in turn, each kind in a loop of its own. */
#include <accel/model.h>

static tensor even(scope s, tensor x) {
  return add(x, tanh_of(linear(at(s, "fc"), x, dim(x, -1))));
}

static tensor odd(scope s, tensor x) {
  return mul(even(s, x), parameter(init_normal(s, 1), "gain", dim(x, -1)));
}

tensor model(scope s, tensor tokens, tensor targets) {
  tensor x = embedding(at(s, "e"), tokens, 256, 12);
  for (int i = 0; i < 6; i += 2) x = even(nth(s, "layer", i), x);
  for (int i = 1; i < 6; i += 2) x = odd(nth(s, "layer", i), x);
  return cross_entropy(linear(at(s, "out"), x, 256), targets);
}
