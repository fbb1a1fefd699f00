#include <accel/model.h>

struct flags {
  int on : 2;
};

tensor model(scope s, tensor tokens) {
  tensor x = embedding(s, tokens, 10, 16);
  struct flags f = {1};
  x = scale(x, f.on);
  return mean_all(x);
}
