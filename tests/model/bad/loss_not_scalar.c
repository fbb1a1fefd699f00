#include <accel/model.h>

tensor model(scope s, tensor tokens) {
  return embedding(s, tokens, 10, 16);
}
