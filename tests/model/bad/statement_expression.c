#include <accel/model.h>

tensor model(scope s, tensor tokens) {
  tensor x = embedding(s, tokens, 10, 16);
  int n = ({ int k = 3; k + 1; });
  x = scale(x, n);
  return mean_all(x);
}
