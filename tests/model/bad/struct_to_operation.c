#include <accel/model.h>

struct pair {
  int a, b;
};

tensor model(scope s, tensor tokens) {
  tensor x = embedding(s, tokens, 10, 16);
  struct pair p = {1, 2};
  x = reshape(x, p);
  return mean_all(x);
}
