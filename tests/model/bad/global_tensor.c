#include <accel/model.h>

static tensor kept;

tensor model(scope s, tensor tokens) {
  tensor x = embedding(s, tokens, 10, 16);
  kept = x;
  return mean_all(kept);
}
