#include <accel/model.h>
#include <math.h>

tensor model(scope s, tensor tokens) {
  tensor x = embedding(s, tokens, 10, 16);
  x = scale(x, log(dim(x, 0) - 12));
  return mean_all(x);
}
