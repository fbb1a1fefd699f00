#include <acel/model.h>
tensor model(scope s, tensor tokens) {
  tensor x = embedding(s, tokens, 10, 16);
  return mean_all(x);
}
