#include <accel/model.h>
tensor model(scope s, tensor tokens, tensor targets) {
  tensor x = embedding(at(s, "e"), tokens, 256, 8);
  x = expand(x, 1, 2);
  x = unsqueeze(x, 1);
  x = svd(x);
  x = LayerNorm(x);
  x = permite(x, 1, 0);
  return cross_entropy(linear(at(s, "h"), x, 256), targets);
}
