#include <accel/model.h>

tensor model(scope s, tensor tokens) {
  tensor x = embedding(s, tokens, 10, 16);
  double big = 1e10;
  int n = (int)big;
  x = scale(x, n);
  return mean_all(x);
}
