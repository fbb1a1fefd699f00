/* A loop that a macro writes; and what is left of for. */
#include <accel/model.h>

#define REPEAT(n) for (; i < n; i++)

tensor model(scope s, tensor tokens) {
  tensor x = embedding(s, tokens, 10, 16);
  int i = 0;
  REPEAT(3) x = relu(x);
  return mean_all(x);
}
