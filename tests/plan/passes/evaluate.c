/* --set training.eval_interval=1 */
#include <accel/model.h>

static tensor layer(scope s, tensor x) {
  return dropout(linear(s, x, 4), 0.5);
}

tensor model(scope s, tensor features, tensor labels) {
  return cross_entropy(layer(at(s, "h"), features), labels);
}
