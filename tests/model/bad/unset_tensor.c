#include <accel/model.h>

tensor model(scope s, tensor tokens) {
  tensor x = embedding(s, tokens, 10, 16);
  tensor last;
  for (int i = 0; i < 0; i++) last = relu(x);
  return mean_all(last);
}
