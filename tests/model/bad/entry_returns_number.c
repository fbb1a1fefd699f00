#include <accel/model.h>

int model(scope s, tensor tokens) {
  return dim(embedding(s, tokens, 10, 16), 0);
}
