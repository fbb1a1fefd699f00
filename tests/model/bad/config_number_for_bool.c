// job: bias=1 width=16
#include <accel/model.h>

struct config {
  bool bias;
  int width;
};

tensor model(scope s, struct config c, tensor tokens) {
  return mean_all(embedding(s, tokens, 10, c.width));
}
