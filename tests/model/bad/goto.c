#include <accel/model.h>

tensor model(scope s, tensor tokens) {
  tensor x = embedding(s, tokens, 10, 16);
  again:
  x = relu(x);
  if (dim(x, 0) < 0) goto again;
  return mean_all(x);
}
