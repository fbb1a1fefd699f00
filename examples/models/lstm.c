/* A language model of long short-term memory: layers of torch.nn.LSTM (Hochreiter, Schmidhuber, Neural Computation 9,
 * 1997), each over what the one before gives, with the names of a PyTorch module that holds `embedding`, `lstm` and
 * `output`.
 *
 * B batch, T tokens of a sequence, E n_embd, H hidden_size, V vocab_size. */
#include <accel/model.h>

struct config {
  int num_layers, n_embd, hidden_size;
  int vocab_size;
  double dropout;
};

const struct config defaults = {.num_layers = 2, .n_embd = 64, .hidden_size = 128, .vocab_size = 256, .dropout = 0};

/* tokens [B][T] to logits [B][T][V]. */
tensor predict(scope s, struct config c, tensor tokens) {
  tensor x = embedding(at(s, "embedding"), tokens, c.vocab_size, c.n_embd);
  for (int layer = 0; layer < c.num_layers; layer++) {
    if (layer > 0) x = dropout(x, c.dropout);
    x = lstm(at(s, "lstm"), x, c.hidden_size, layer);
  }
  return linear(at(s, "output"), x, c.vocab_size);
}

tensor model(scope s, struct config c, tensor tokens, tensor targets) {
  return cross_entropy(predict(s, c, tokens), targets);
}
