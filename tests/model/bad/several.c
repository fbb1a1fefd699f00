#include <accel/model.h>
#include <stdlib.h>

tensor model(scope s, tensor tokens) {
  tensor x = embedding(s, tokens, 10, 16);
  int n = 1;
  int *p = &n;
  goto end;
  x = scale(x, rand());
  end:
  return mean_all(x);
}
