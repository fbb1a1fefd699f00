#include <accel/model.h>

tensor model(scope s, tensor tokens) {
  tensor x = embedding(s, tokens, 10, 16);
  x = scale(x, 1e308 * dim(x, 0));
  return mean_all(x);
}
