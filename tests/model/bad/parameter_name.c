#include <accel/model.h>

tensor model(scope s, tensor tokens) {
  tensor x = embedding(s, tokens, 10, 16);
  x = add(x, parameter(s, "a\"; exit(1); //", 16));
  return mean_all(x);
}
