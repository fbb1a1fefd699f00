#include <accel/model.h>

static tensor first_of(tensor parts[]) {
  parts[0] = relu(parts[1]);
  return parts[1];
}

tensor model(scope s, tensor tokens) {
  tensor x = embedding(s, tokens, 10, 16);
  tensor parts[2] = {x, x};
  x = first_of(parts);
  return mean_all(add(x, parts[0]));
}
