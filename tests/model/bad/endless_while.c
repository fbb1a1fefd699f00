#include <accel/model.h>

tensor model(scope s, tensor tokens) {
  tensor x = embedding(s, tokens, 10, 16);
  int i = 0;
  while (true) i = 1 - i;
  return mean_all(x);
}
