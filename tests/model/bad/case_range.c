#include <accel/model.h>

tensor model(scope s, tensor tokens) {
  tensor x = embedding(s, tokens, 10, 16);
  switch (dim(x, 0)) {
  case 1 ... 12:
    x = relu(x);
  }
  return mean_all(x);
}
