#include <accel/model.h>

tensor model(scope s, tensor tokens) {
  tensor x = embedding(s, tokens, 10, 16);
  tensor parts[2] = {x, x};
  for (int i = 0; i <= 2; i++) x = add(x, parts[i]);
  return mean_all(x);
}
