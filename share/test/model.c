/* The model of `accel-gen test`: a small transformer over bytes. */
#include <accel/model.h>

struct config {
  int n_layer, n_head, n_embd, block_size;
};

/* One of the three parts of qkv [B][T][3 C] as [B][H][T][C / H]. */
static tensor heads(tensor qkv, int part, struct config c) {
  tensor x = split(qkv, 2, 3, part);
  return transpose(reshape(x, dim(x, 0), dim(x, 1), c.n_head, c.n_embd / c.n_head), 1, 2);
}

static tensor block(scope s, tensor x, struct config c) {
  tensor qkv = linear(at(s, "qkv"), layer_norm(at(s, "norm_1"), x), 3 * c.n_embd);
  tensor y = transpose(attention(heads(qkv, 0, c), heads(qkv, 1, c), heads(qkv, 2, c), CAUSAL), 1, 2);
  x = add(x, linear(at(s, "out"), reshape(y, dim(y, 0), dim(y, 1), c.n_embd), c.n_embd));
  tensor wide = gelu(linear(at(s, "up"), layer_norm(at(s, "norm_2"), x), 4 * c.n_embd));
  return add(x, linear(at(s, "down"), wide, c.n_embd));
}

tensor model(scope s, struct config c, tensor tokens, tensor targets) {
  tensor x = embedding(at(s, "tokens"), tokens, 256, c.n_embd);
  x = add(x, slice(parameter(at(s, "positions"), "weight", c.block_size, c.n_embd), 0, 0, dim(tokens, 1)));
  for (int i = 0; i < c.n_layer; i++) x = block(nth(s, "layers", i), x, c);
  return cross_entropy(linear(at(s, "head"), layer_norm(at(s, "norm"), x), 256), targets);
}
