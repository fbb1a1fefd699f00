#include <accel/model.h>

tensor model(scope s, tensor tokens) {
  tensor targets = cast_target(cast_float(tokens), 10, -100);
  return mean_all(embedding(s, targets, 10, 16));
}
