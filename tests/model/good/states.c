// job: width=16 steps=3
/* Structs and arrays of tensors through functions: the long short-term memory keeps two tensors. */
#include <accel/model.h>

struct config {
  int width, steps;
};

struct state {
  tensor h, c;
};

static tensor gate(tensor gates, int which) {
  return split(gates, 1, 4, which);
}

static struct state step(scope s, tensor x, struct state old) {
  int width = dim(old.h, 1);
  tensor gates = add(linear(at(s, "input"), x, 4 * width), linear_no_bias(at(s, "state"), old.h, 4 * width));
  struct state new;
  new.c = add(mul(sigmoid(gate(gates, 0)), old.c), mul(sigmoid(gate(gates, 1)), tanh_of(gate(gates, 2))));
  new.h = mul(sigmoid(gate(gates, 3)), tanh_of(new.c));
  return new;
}

static tensor average(const tensor states[], int count) {
  tensor all = states[0];
  for (int i = 1; i < count; i++) all = add(all, states[i]);
  return scale(all, 1.0 / count);
}

tensor model(scope s, struct config c, tensor tokens) {
  tensor x = embedding(at(s, "table"), tokens, 256, c.width);
  tensor start = add(constant(0, dim(x, 0), c.width), parameter(s, "start", c.width));
  struct state state = {start, start};
  tensor states[c.steps];
  for (int i = 0; i < c.steps; i++) {
    state = step(at(s, "cell"), reshape(slice(x, 1, i, 1), dim(x, 0), c.width), state);
    states[i] = state.h;
  }
  return mean_all(square(average(states, c.steps)));
}
