/* A gated recurrent unit over bytes (Cho et al., arXiv:1406.1078), unrolled over time, with the parameters of
 * torch.nn.Embedding, GRUCell and Linear.
 *
 * B batch, T tokens of a sequence, E n_embd, H width, V vocab_size. */
#include <accel/model.h>
#include <math.h>

struct config {
  int n_embd, width;
  int vocab_size, block_size;
};

const struct config defaults = {.n_embd = 64, .width = 128, .vocab_size = 256};

/* One step: x [B][E] and the state h [B][H] give the next state. */
static tensor cell(scope s, tensor x, tensor h) {
  int width = dim(h, 1);
  s = init_uniform(s, 1 / sqrt(width));
  tensor input = matmul_transposed(x, parameter(s, "weight_ih", 3 * width, dim(x, 1)));
  tensor state = matmul_transposed(h, parameter(s, "weight_hh", 3 * width, width));
  input = add(input, parameter(s, "bias_ih", 3 * width));
  state = add(state, parameter(s, "bias_hh", 3 * width));

  tensor reset = sigmoid(add(split(input, 1, 3, 0), split(state, 1, 3, 0)));
  tensor keep = sigmoid(add(split(input, 1, 3, 1), split(state, 1, 3, 1)));
  tensor fresh = tanh_of(add(split(input, 1, 3, 2), mul(reset, split(state, 1, 3, 2))));
  return add(fresh, mul(keep, sub(h, fresh)));
}

/* x[:, t]: [B][T] gives [B], [B][T][E] gives [B][E]. */
static tensor token_at(tensor x, int t) {
  return reshape(slice(x, 1, t, 1), dim(x, 0));
}

static tensor vector_at(tensor x, int t) {
  return reshape(slice(x, 1, t, 1), dim(x, 0), dim(x, 2));
}

static tensor step_loss(scope s, tensor h, tensor target, struct config c) {
  return cross_entropy(linear(at(s, "output"), h, c.vocab_size), target);
}

tensor model(scope s, struct config c, tensor tokens, tensor targets) {
  tensor x = embedding(at(s, "embedding"), tokens, c.vocab_size, c.n_embd);
  tensor h = add(constant(0, dim(tokens, 0), c.width), parameter(s, "start", c.width));
  tensor loss = constant(0, 1);
  for (int t = 0; t < dim(tokens, 1); t++) {
    h = cell(at(s, "cell"), vector_at(x, t), h);
    loss = add(loss, step_loss(s, h, token_at(targets, t), c));
  }
  return scale(sum_all(loss), 1.0 / dim(tokens, 1));
}
