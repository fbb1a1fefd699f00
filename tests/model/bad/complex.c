#include <accel/model.h>

tensor model(scope s, tensor tokens) {
  tensor x = embedding(s, tokens, 10, 16);
  double _Complex z = 1.0;
  x = scale(x, (double)z);
  return mean_all(x);
}
