/* Columns of a row that are indices: 0 to 3 tokens, by way of a function that gives them and another that looks them
 * up; 5 and 4, in that order, positions; 6 a target next to the label. Column 7 is a number. */
#include <accel/model.h>

struct config {
  int vocab_size, positions, width, classes;
};

tensor columns(tensor features, int from, int count) {
  return slice(features, 1, from, count);
}

tensor look_up(scope s, struct config c, tensor tokens) {
  return sum(embedding(at(s, "tokens"), tokens, c.vocab_size, c.width), 1);
}

tensor model(scope s, struct config c, tensor features, tensor labels) {
  int batch = dim(features, 0);
  tensor tokens = cast_index(columns(features, 0, 4), c.vocab_size);
  tensor positions = cast_index(concat(1, columns(features, 5, 1), columns(features, 4, 1)), c.positions);
  tensor extra = cast_target(reshape(columns(features, 6, 1), batch), c.classes, -100);
  tensor x = add(look_up(s, c, tokens), sum(embedding(at(s, "positions"), positions, c.positions, c.width), 1));
  x = add(x, columns(features, 7, 1));
  tensor logits = linear(at(s, "output"), x, c.classes);
  return add(cross_entropy(logits, labels), cross_entropy(linear(at(s, "extra"), x, c.classes), extra));
}
