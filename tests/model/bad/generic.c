#include <accel/model.h>

tensor model(scope s, tensor tokens) {
  tensor x = embedding(s, tokens, 10, 16);
  x = scale(x, _Generic(1, int: 2, default: 3));
  return mean_all(x);
}
