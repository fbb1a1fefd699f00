#include <accel/model.h>

static int deeper(int n) {
  return n == 0 ? 0 : 1 + (1 + (1 + (1 + (1 + (1 + (1 + (1 + (1 + (1 + (1 + (1 + (1 + (1 + (1 + (1 + (1 + (1 + (1 + (1 + (1 + (1 + (1 + (1 + (1 + (1 + (1 + (1 + deeper(n - 1))))))))))))))))))))))))))));
}

tensor model(scope s, tensor tokens) {
  tensor x = embedding(s, tokens, 10, 16);
  x = scale(x, deeper(250));
  return mean_all(x);
}
