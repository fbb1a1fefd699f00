/* --program evaluate --set training.eval_interval=1 --set training.metrics=[accuracy] */
#include <accel/model.h>

tensor predict(scope s, tensor features) {
  return dropout(linear(at(s, "h"), features, 2), 0.5);
}

tensor model(scope s, tensor features, tensor labels) {
  return cross_entropy(predict(s, features), labels);
}
