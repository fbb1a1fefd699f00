// job: activation=GELO width=16
#include <accel/model.h>

enum activation { RELU, GELU };

struct config {
  enum activation activation;
  int width;
};

tensor model(scope s, struct config c, tensor tokens) {
  return mean_all(embedding(s, tokens, 10, c.width));
}
