#include <accel/model.h>

tensor model(scope s, tensor tokens) {
  tensor x = embedding(s, tokens, 10, 16);
  bool known = x;
  if (known) x = relu(x);
  return mean_all(x);
}
