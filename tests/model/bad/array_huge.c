#include <accel/model.h>

tensor model(scope s, tensor tokens) {
  tensor x = embedding(s, tokens, 10, 16);
  int sizes[100000000];
  sizes[0] = 1;
  x = scale(x, sizes[0]);
  return mean_all(x);
}
