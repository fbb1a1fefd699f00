/* --set model.freeze=[up.weight] --set model.quantize.load_in_8bit=true --set training.eval_interval=1 */
#include <accel/model.h>

tensor model(scope s, tensor features, tensor labels) {
  tensor x = linear(at(s, "up"), features, 4);
  return cross_entropy(linear(at(s, "out"), x, 2), labels);
}
