#include <accel/model.h>

tensor model(scope s, tensor tokens) {
  tensor x = embedding(at(s, "wte"), tokens, 256, 16);
  x = add(x, linear_no_bias(at(s, "in"), x, 16));
  x = add(x, linear_no_bias(at(s, "up"), layer_norm(at(s, "norm"), x), 16));
  return mean_all(linear_no_bias(at(s, "head"), layer_norm(at(s, "last"), x), 16));
}
