#include <accel/model.h>

tensor model(scope s, tensor tokens) {
  tensor x = embedding(at(s, "wte"), tokens, 256, 16);
  tensor y = linear_no_bias(at(s, "up"), rms_norm(at(s, "norm"), x), 16);
  return mean_all(matmul(x, transpose(y, 1, 2)));
}
