#include <accel/model.h>

tensor model(scope s, tensor tokens) {
  tensor x = embedding(s, tokens, 10, 16);
  if (dim(x, 0) == 12 && x) x = relu(x);
  return mean_all(x);
}
