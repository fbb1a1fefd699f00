/* Dropout in functions with parameters and without, of which a loop calls two, and another loop one after the other. */
#include <accel/model.h>

struct config {
  int n_layer, width, vocab_size, block_size;
  double dropout;
};

static tensor dropped(tensor x, struct config c) {
  return dropout(dropout(x, c.dropout), 0.5 * c.dropout);
}

static tensor first(scope s, tensor x, struct config c) {
  return dropout(relu(linear(at(s, "a"), x, c.width)), c.dropout);
}

static tensor second(scope s, tensor x, struct config c) {
  return dropped(linear(at(s, "b"), x, c.width), c);
}

tensor model(scope s, tensor tokens, tensor targets, struct config c) {
  tensor x = embedding(at(s, "wte"), tokens, c.vocab_size, c.width);
  for (int i = 0; i < c.n_layer; i++) {
    x = add(x, first(nth(s, "h", i), x, c));
    x = add(x, second(nth(s, "h", i), x, c));
  }
  x = dropped(x, c);
  for (int i = 0; i < c.n_layer; i++) x = second(nth(s, "last", i), x, c);
  x = mul(x, add(random_uniform(c.width), random_normal(c.block_size, 1)));
  return cross_entropy(linear(at(s, "head"), x, c.vocab_size), targets);
}
