#include <accel/model.h>

tensor model(scope s, tensor tokens, tensor targets) {
  tensor x = embedding(at(s, "wte"), tokens, 256, 16);
  return cross_entropy(linear_no_bias(at(s, "head"), x, 256), targets);
}
