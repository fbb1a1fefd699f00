#include <accel/model.h>

static int counter = 1;

tensor model(scope s, tensor tokens) {
  tensor x = embedding(s, tokens, 10, 16);
  counter = counter + 1;
  x = scale(x, counter);
  return mean_all(x);
}
