#include <accel/model.h>

tensor model(scope s, tensor tokens) {
  tensor x = embedding(s, tokens, 10, 16);
  int n;
  if (dim(x, 0) > 100) n = 1;
  x = scale(x, n);
  return mean_all(x);
}
