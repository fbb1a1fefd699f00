/* A classifier of table rows whose hidden layers are normalised over the batch.
 *
 * B batch, F columns, K classes. */
#include <accel/model.h>

struct config {
  int n_layer, width;
  int n_classes;
};

const struct config defaults = {.n_layer = 1, .width = 9};

static tensor hidden(scope s, tensor x, int width) {
  return relu(batch_norm(at(s, "norm"), linear(s, x, width)));
}

tensor model(scope s, struct config c, tensor features, tensor labels) {
  tensor x = features;
  for (int i = 0; i < c.n_layer; i++) x = hidden(nth(s, "hidden", i), x, c.width);
  return cross_entropy(linear(at(s, "output"), x, c.n_classes), labels);
}
