/* --set training.eval_interval=1 --set training.eval_iters=all */
#include <accel/model.h>

tensor model(scope s, tensor features, tensor labels) {
  return cross_entropy_ignore(linear(at(s, "out"), features, 2), labels, 1);
}
