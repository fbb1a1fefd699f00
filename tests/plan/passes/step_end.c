/* --set accumulation.num_steps=2 --set accumulation.normalize=tokens */
#include <accel/model.h>

tensor model(scope s, tensor features, tensor labels) {
  return cross_entropy_ignore(linear(at(s, "out"), features, 2), labels, 1);
}
