/* --set model.freeze=[in.*] */
#include <accel/model.h>

tensor model(scope s, tensor features, tensor labels) {
  return cross_entropy(linear(at(s, "out"), relu(linear(at(s, "in"), features, 4)), 2), labels);
}
