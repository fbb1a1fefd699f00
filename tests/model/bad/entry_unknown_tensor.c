#include <accel/model.h>

tensor model(scope s, tensor token) {
  return mean_all(embedding(s, token, 10, 16));
}
