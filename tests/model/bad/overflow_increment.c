#include <accel/model.h>

tensor model(scope s, tensor tokens) {
  tensor x = embedding(s, tokens, 10, 16);
  int big = 2147483647;
  big++;
  x = scale(x, big);
  return mean_all(x);
}
