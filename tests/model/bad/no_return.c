#include <accel/model.h>

static tensor maybe(tensor x) {
  if (dim(x, 0) > 100) return relu(x);
}

tensor model(scope s, tensor tokens) {
  tensor x = embedding(s, tokens, 10, 16);
  x = maybe(x);
  return mean_all(x);
}
