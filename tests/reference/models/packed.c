/* A causal layer of attention over documents that are in one row, with learned positions. */
#include <accel/model.h>

struct config {
  int width, block_size;
};

tensor model(scope s, struct config c, tensor tokens, tensor targets, tensor starts, tensor positions) {
  tensor x = add(embedding(at(s, "tokens"), tokens, 40, c.width),
                 embedding(at(s, "positions"), positions, c.block_size, c.width));
  tensor h = transpose(reshape_to(x, 4, dim(tokens, 0), dim(tokens, 1), 2, c.width / 2), 1, 2);
  tensor y = transpose(attention_documents(h, h, h, starts), 1, 2);
  y = reshape_to(y, 3, dim(tokens, 0), dim(tokens, 1), c.width);
  return cross_entropy(linear(at(s, "head"), add(x, y), 40), targets);
}
