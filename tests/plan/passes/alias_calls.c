#include <accel/model.h>

static tensor cell(scope s, tensor x, tensor state) {
  return tanh_of(add(linear(s, x, 40), state));
}

/* Results of calls of one function, as in a recurrence. */
tensor model(scope s, tensor features, tensor labels) {
  tensor state = cell(at(s, "cell"), features, linear(at(s, "start"), features, 40));
  state = cell(at(s, "cell"), features, state);
  return cross_entropy(linear(at(s, "out"), state, 2), labels);
}
