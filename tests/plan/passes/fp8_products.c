/* --set precision.mixed_precision=fp8 */
#include <accel/model.h>

tensor model(scope s, tensor features, tensor labels) {
  tensor x = linear(at(s, "up"), features, 16);
  x = linear(at(s, "middle"), x, 32);
  return cross_entropy(linear(at(s, "out"), x, 2), labels);
}
