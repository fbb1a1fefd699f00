#include <accel/model.h>

tensor model(scope s, tensor tokens) {
  tensor x = embedding(s, tokens, 10, 16);
  long big = 1L << 40;
  int n = big;
  x = scale(x, n);
  return mean_all(x);
}
