// job: n_layer=2
#include <accel/model.h>

tensor model(scope s, tensor tokens) {
  return mean_all(embedding(s, tokens, 10, 16));
}
