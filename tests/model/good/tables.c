/* Tables of the first numbers of arrays that hold more, or that have no more values. */
#include <accel/model.h>

tensor model(scope s, tensor tokens) {
  (void)tokens;
  int targets[8];
  double weights[8];
  for (int i = 0; i < 3; i++) {
    targets[i] = i;
    weights[i] = i * 0.5;
  }
  tensor logits = parameter(s, "logits", 3, 4);
  tensor loss = cross_entropy(logits, int_table_of(3, targets));
  return add(loss, mean_all(mul(sum(logits, 1), table_of(2 + 1, weights))));
}
