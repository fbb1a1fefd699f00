/* --set devices.per_node=2 --set parallelism.sync_batch_norm=true */
#include <accel/images.h>
#include <accel/model.h>

tensor model(scope s, tensor features, tensor labels) {
  return cross_entropy(batch_norm(at(s, "norm"), linear(at(s, "in"), features, 2)), labels);
}
