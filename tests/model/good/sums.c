/* Sums of products by labels, and numbers drawn again in each run. */
#include <accel/model.h>

tensor model(scope s, tensor tokens, tensor targets) {
  tensor x = embedding(at(s, "table"), tokens, 16, 8);
  tensor heads = einsum("btc,hcd->bhtd", x, parameter(s, "weight", 2, 8, 8));
  tensor scores = einsum("bhtd,bhud->bhtu", heads, heads);
  tensor logits = einsum("bhtu,...uhc->btc", scores, random_normal(dim(x, 1), 2, 16));
  return cross_entropy(logits, targets);
}
