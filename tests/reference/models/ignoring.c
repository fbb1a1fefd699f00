/* The next byte from this one, where targets that are `ignored` do not count. The loss comes out of a function with
 * parameters of its own. */
#include <accel/model.h>

struct config {
  int width, ignored, block_size;
  bool z;
  double smoothing;
};

static tensor head_loss(scope s, tensor x, tensor targets, struct config c) {
  tensor logits = linear(s, x, 256);
  if (c.z) return cross_entropy_with(logits, targets, c.ignored, c.smoothing, 0.01);
  tensor loss = cross_entropy_ignore(logits, targets, c.ignored);
  return scale(add(loss, loss), 0.5);
}

tensor model(scope s, struct config c, tensor tokens, tensor targets) {
  tensor x = tanh_of(linear(at(s, "hidden"), embedding(at(s, "embedding"), tokens, 256, c.width), c.width));
  return head_loss(at(s, "head"), x, targets, c);
}
