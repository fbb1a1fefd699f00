/* accel/model.h's functions that go from step to step. */
#include <math.h>
#include <stdio.h>

#include "gen/verify/layers.h"
#include "gen/verify/tape/elements.h"
#include "gen/verify/tape/tape.h"

/* Step t of x [batch][steps][columns] as [batch][columns]. */
static tensor at_step(tensor x, int t) {
  return reshaped(slice(x, 1, t, 1), 2, (const int64_t[]){x->dim[0], x->dim[2]});
}

/* y with the columns of step t added. */
static tensor with_step(tensor y, tensor x, int t, int steps) {
  tensor one = reshaped(x, 3, (const int64_t[]){x->dim[0], 1, x->dim[1]});
  tensor all = pad(one, 1, t, steps - 1 - t);
  return y == NULL ? all : joined(y, all);
}

static tensor weight_of(scope s, const char *name, int layer, int rank, int64_t rows, int64_t columns) {
  char numbered[64];
  snprintf(numbered, sizeof numbered, "%s_l%d", name, layer);
  const double bound = 1 / sqrt((double)rows / 4);
  return parameter_of_layer(s, numbered, rank, (const int64_t[]){rows, columns}, START_UNIFORM, -bound, bound);
}

tensor lstm(scope s, tensor x, int width, int layer) {
  const int64_t rows = 4 * (int64_t)width;
  const int steps = dim(x, 1);
  tensor of_x = weight_of(s, "weight_ih", layer, 2, rows, x->dim[2]);
  tensor of_h = weight_of(s, "weight_hh", layer, 2, rows, width);
  tensor bias = add(weight_of(s, "bias_ih", layer, 1, rows, 0), weight_of(s, "bias_hh", layer, 1, rows, 0));
  tensor h = tape_new(2, (const int64_t[]){x->dim[0], width}), c = h, y = NULL;
  for (int t = 0; t < steps; t++) {
    tensor gates = add(add(matmul_transposed(at_step(x, t), of_x), matmul_transposed(h, of_h)), bias);
    tensor in = sigmoid(split(gates, 1, 4, 0)), forget = sigmoid(split(gates, 1, 4, 1));
    tensor cell = tanh_of(split(gates, 1, 4, 2)), out = sigmoid(split(gates, 1, 4, 3));
    c = add(mul(forget, c), mul(in, cell));
    h = mul(out, tanh_of(c));
    y = with_step(y, h, t, steps);
  }
  return y;
}

tensor selective_scan(tensor u, tensor delta, tensor a, tensor b, tensor c) {
  const int64_t batch = u->dim[0], channels = u->dim[2], states = a->dim[1];
  const int64_t of_channels[] = {batch, channels, 1}, of_states[] = {batch, 1, states};
  const int steps = dim(u, 1);
  tensor h = tape_new(3, (const int64_t[]){batch, channels, states}), y = NULL;
  for (int t = 0; t < steps; t++) {
    tensor d = reshaped(at_step(delta, t), 3, of_channels), x = reshaped(at_step(u, t), 3, of_channels);
    tensor into = reshaped(at_step(b, t), 3, of_states), from = reshaped(at_step(c, t), 3, of_states);
    h = add(mul(exp_of(mul(d, a)), h), mul(mul(d, x), into));
    y = with_step(y, sum(mul(h, from), 2), t, steps);
  }
  return y;
}
