/* --set model.lora.targets=[up] --set model.lora.rank=2 */
#include <accel/model.h>

tensor model(scope s, tensor features, tensor labels) {
  tensor x = linear(at(s, "up"), features, 4);
  return cross_entropy(linear(at(s, "out"), x, 2), labels);
}
