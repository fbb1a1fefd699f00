#include <accel/model.h>

struct odd {
  struct {
    int a;
  };
};

tensor model(scope s, tensor tokens) {
  tensor x = embedding(s, tokens, 10, 16);
  struct odd o = {1};
  x = scale(x, o.a);
  return mean_all(x);
}
