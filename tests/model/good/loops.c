/* Loops: rolled where the iterations are one region in a chain, unrolled elsewhere; inline functions are no regions. */
#include <accel/model.h>

static tensor block(scope s, tensor x) {
  return add(x, relu(linear(s, x, dim(x, 2))));
}

static inline tensor inlined(scope s, tensor x) {
  return tanh_of(linear_no_bias(s, x, dim(x, 2)));
}

static tensor halves(scope s, tensor x, int width) {
  if (width < 4) return linear(at(s, "leaf"), x, 4);
  return halves(nth(s, "half", width), linear(at(s, "in"), x, width / 2), width / 2);
}

tensor model(scope s, tensor tokens) {
  tensor x = embedding(at(s, "table"), tokens, 10, 8);
  for (int i = 0; i < 5; i++) x = block(nth(s, "rolled", i), x);
  for (int i = 8; i > 2; i -= 2) x = block(nth(s, "down", i), x);
  for (int i = 0; i < 3; i++) x = block(at(s, "same"), x);
  for (int i = 0; i < 4; i++) {
    if (i == 2) continue;
    x = block(nth(s, "gaps", i), x);
  }
  for (int i = 0; i < 2; i++)
    for (int k = 0; k < 2; k++) x = block(nth(nth(s, "outer", i), "inner", k), x);
  int i = 0;
  while (true) {
    x = inlined(nth(s, "inlined", i), x);
    if (++i == 2) break;
  }
  return mean_all(halves(at(s, "tree"), x, 16));
}
