#include <accel/model.h>
#include <math.h>

tensor model(scope s, tensor tokens) {
  tensor x = embedding(s, tokens, 10, 16);
  x = scale(x, sqrt(-1.0 * dim(x, 0)));
  return mean_all(x);
}
