// job: name=3 width=16
#include <accel/model.h>

struct config {
  const char *name;
  int width;
};

tensor model(scope s, struct config c, tensor tokens) {
  return mean_all(embedding(s, tokens, 10, c.width));
}
