/* --program generate */
#include <accel/model.h>

static tensor heads(tensor x) {
  return transpose(reshape(x, dim(x, 0), dim(x, 1), 1, 4), 1, 2);
}

tensor predict(scope s, tensor tokens) {
  tensor x = embedding(at(s, "e"), tokens, 256, 4);
  tensor y = attention(heads(x), heads(linear(at(s, "k"), x, 4)), heads(x), CAUSAL);
  return linear_no_bias(at(s, "out"), reshape(transpose(y, 1, 2), dim(x, 0), dim(x, 1), 4), 256);
}

tensor model(scope s, tensor tokens, tensor targets) {
  return cross_entropy(predict(s, tokens), targets);
}
