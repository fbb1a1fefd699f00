#include <accel/model.h>

tensor model(scope s, tensor tokens) {
  tensor x = embedding(s, tokens, 10, 16);
  static int counter = 1;
  counter++;
  x = scale(x, counter);
  return mean_all(x);
}
