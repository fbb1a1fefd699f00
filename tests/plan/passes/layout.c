#include <accel/model.h>

static tensor layer(scope s, tensor x) {
  return tanh_of(linear(s, x, 3));
}

/* A loop keeps a row of x; parts are written where the whole is. */
tensor model(scope s, tensor features, tensor labels) {
  tensor x = linear(at(s, "in"), features, 3);
  for (int i = 0; i < 2; i++) x = layer(nth(s, "h", i), x);
  return cross_entropy(concat(1, linear(at(s, "more"), x, 1), slice(x, 1, 1, 2)), labels);
}
