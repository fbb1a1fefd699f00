#include <accel/model.h>
#include <stdio.h>

tensor model(scope s, tensor tokens) {
  tensor x = embedding(s, tokens, 10, 16);
  printf("%d\n", dim(x, 0));
  return mean_all(x);
}
