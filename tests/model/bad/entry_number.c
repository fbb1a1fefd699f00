#include <accel/model.h>

tensor model(scope s, int width, tensor tokens) {
  return mean_all(embedding(s, tokens, 10, width));
}
