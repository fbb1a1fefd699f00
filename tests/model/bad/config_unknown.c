// job: n_layers=2 width=16
#include <accel/model.h>

struct config {
  int n_layer, width;
};

tensor model(scope s, struct config c, tensor tokens) {
  return mean_all(embedding(s, tokens, 10, c.width));
}
