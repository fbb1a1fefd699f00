/* A model in which each position sees one after it, which text generation cannot keep. */
#include <accel/model.h>

struct config {
  int width, vocab_size;
};

tensor predict(scope s, struct config c, tensor tokens) {
  tensor x = embedding(at(s, "table"), tokens, c.vocab_size, c.width);
  return linear(at(s, "output"), add(x, scale(flip(x, 1), 0.5)), c.vocab_size);
}

tensor model(scope s, struct config c, tensor tokens, tensor targets) {
  return cross_entropy(predict(s, c, tokens), targets);
}
