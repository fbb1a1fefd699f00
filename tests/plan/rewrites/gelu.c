#include <accel/model.h>

tensor model(scope s, tensor tokens) {
  tensor x = embedding(at(s, "wte"), tokens, 256, 16);
  x = gelu_tanh(linear_no_bias(at(s, "up"), x, 32));
  return mean_all(linear_no_bias(at(s, "down"), x, 16));
}
