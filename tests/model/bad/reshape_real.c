#include <accel/model.h>

tensor model(scope s, tensor tokens) {
  tensor x = embedding(s, tokens, 10, 16);
  x = reshape(x, 12, 64, 32 / 2.0);
  return mean_all(x);
}
