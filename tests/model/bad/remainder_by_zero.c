#include <accel/model.h>

tensor model(scope s, tensor tokens) {
  tensor x = embedding(s, tokens, 10, 16);
  int n = 0;
  x = scale(x, 12 % n);
  return mean_all(x);
}
