#include <accel/model.h>

tensor model(scope s, tensor tokens) {
  tensor x = embedding(s, tokens, 10, 16);
  tensor parts[2];
  parts[0] = x;
  x = concat(0, parts);
  return mean_all(x);
}
