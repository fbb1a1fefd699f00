/* Layers that all read one value with a gradient, next to what they pass on; in a loop, or written out. The first layer
 * and what follows the loop read it, too. */
#include <accel/model.h>

struct config {
  bool looped;
};

static tensor layer(scope s, tensor x, tensor memory) {
  return add(x, mul(tanh_of(linear(at(s, "a"), memory, dim(x, -1))), linear(at(s, "b"), add(x, memory), dim(x, -1))));
}

tensor model(scope s, struct config c, tensor tokens, tensor targets) {
  tensor memory = layer_norm(at(s, "norm"), embedding(at(s, "m"), tokens, 256, 12));
  tensor x = layer(at(s, "first"), embedding(at(s, "e"), tokens, 256, 12), memory);
  if (c.looped)
    for (int i = 0; i < 4; i++) x = layer(nth(s, "layer", i), x, memory);
  else
    x = layer(at(s, "layer.3"),
              layer(at(s, "layer.2"), layer(at(s, "layer.1"), layer(at(s, "layer.0"), x, memory), memory), memory),
              memory);
  return cross_entropy(linear(at(s, "out"), add(x, memory), 256), targets);
}
