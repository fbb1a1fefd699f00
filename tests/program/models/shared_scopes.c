/* Functions over scopes that hold more than they touch: parameters of others, and functions of others. `SMALL` is a
 * word before each of them: nothing, or inline. */
#include <accel/model.h>

#ifndef SMALL
#define SMALL
#endif

static SMALL tensor inner(scope s, tensor x) {
  return relu(linear(at(s, "i"), x, 8));
}
static SMALL tensor helper(scope s, scope shared, tensor x) {
  return linear(at(s, "b"), mul(inner(at(s, "deep"), x), parameter(shared, "gain", 8)), 8);
}
tensor model(scope s, tensor tokens, tensor targets) {
  tensor x = embedding(at(s, "e"), tokens, 256, 8);
  scope g = init_ones(s);
  x = helper(at(s, "one"), g, x);
  x = helper(at(s, "two"), g, x);
  x = linear(at(s, "two.more"), x, 8);
  x = inner(at(s, "two.more.deep"), x);
  for (int i = 0; i < 3; i++) x = add(x, helper(nth(s, "l", i), g, x));
  return cross_entropy(linear(at(s, "h"), helper(s, g, x), 256), targets);
}
