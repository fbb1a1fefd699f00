/* The next byte from this one, under losses that are means over what a batch counts: 0, over the targets that are not
 * -100; 1, over those that are not 32; 2, over those above 100, made by hand. And others: 3, a sum; 4, the same over
 * the number of samples. */
#include <accel/model.h>

struct config {
  int form;
  double drop;
};

tensor predict(scope s, tensor tokens, double drop) {
  return linear(at(s, "output"), dropout(embedding(at(s, "embedding"), tokens, 256, 6), drop), 256);
}

static tensor loss(scope s, struct config c, tensor tokens, tensor targets) {
  tensor logits = predict(s, tokens, c.drop);
  if (c.form == 0) return cross_entropy(logits, targets);
  tensor rows = sum(square(logits), 2);
  if (c.form == 3) return sum_all(rows);
  if (c.form == 4) return scale(sum_all(rows), 1.0 / dim(rows, 0));
  tensor high = greater(cast_float(targets), constant(100.0, 1));
  return sum_all(divide(sum_all(mul(rows, high)), maximum(sum_all(high), constant(1.0, 1))));
}

tensor model(scope s, struct config c, tensor tokens, tensor targets) {
  if (c.form == 1) return cross_entropy_ignore(predict(at(s, "net"), tokens, c.drop), targets, 32);
  return loss(at(s, "net"), c, tokens, targets);
}
