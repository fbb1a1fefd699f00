/* Convolutions, sums and shifts whose results end at their own position. */
#include <accel/model.h>

struct config {
  int width, kernel, dilation, shift, vocab_size;
};

tensor predict(scope s, struct config c, tensor tokens) {
  int positions = dim(tokens, 1), reach = c.dilation * (c.kernel - 1);
  tensor x = embedding(at(s, "table"), tokens, c.vocab_size, c.width);
  x = add(x, slice(concat(1, parameter(s, "start", 1, c.shift, c.width), x), 1, 0, positions));
  tensor around = conv1d_grouped(at(s, "around"), transpose(x, 1, 2), c.width, c.kernel, 1, reach, c.dilation, c.width);
  x = transpose(relu(slice(around, 2, 0, positions)), 1, 2);
  x = add(x, scale(cumsum(x, 1), 0.1));
  tensor padded = pad(transpose(x, 1, 2), 2, reach, 0);
  tensor both =
      transpose(tanh_of(conv1d_grouped(at(s, "valid"), padded, 2 * c.width, c.kernel, 1, 0, c.dilation, 1)), 1, 2);
  tensor far = pad(split(both, 2, 2, 0), 1, 3, 0);
  x = add(split(both, 2, 2, 1), mul(slice(far, 1, 1, positions), slice(far, 1, 3, positions)));
  return linear(at(s, "output"), x, c.vocab_size);
}

tensor model(scope s, struct config c, tensor tokens, tensor targets) {
  return cross_entropy(predict(s, c, tokens), targets);
}
