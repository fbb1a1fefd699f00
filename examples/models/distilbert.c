/* DistilBERT (Sanh et al., arXiv:1910.01108): the tensor names and the arithmetic of transformers'
 * DistilBertForMaskedLM, so that its checkpoints load from their model.safetensors. Tokens that are pad_token_id are
 * padding, which nobody attends to; -1: none is. Targets of -100 do not count.
 *
 * B batch, T tokens of a sequence, C dim, H n_heads, D = C / H. */
#include <accel/model.h>

struct config {
  int n_layers, n_heads, dim, hidden_dim, vocab_size, max_position_embeddings, pad_token_id;
  double initializer_range, dropout;
};

const struct config defaults = {
    .max_position_embeddings = 512,
    .pad_token_id = -1,
    .initializer_range = 0.02,
    .dropout = 0,
};

const char *const architectures[] = {"DistilBertForMaskedLM"};

/* What a published config.json says otherwise than by a field's own name. */
const struct published published[] = {
    {"model_type", .is = "distilbert"},
    {"activation", .is = "gelu"},
    {"tie_word_embeddings tie_weights_", .is = "true"},
    {"sinusoidal_pos_embds"}, /* how the table of positions started */
};

#define EPS 1e-12

/* [B][T][C] as [B][H][T][D]. */
static tensor heads(tensor x, struct config c) {
  return transpose(reshape(x, dim(x, 0), dim(x, 1), c.n_heads, c.dim / c.n_heads), 1, 2);
}

/* tokens [B][T]: whose keys count. */
static tensor attend(scope s, tensor x, tensor tokens, struct config c) {
  tensor q = heads(linear(at(s, "q_lin"), x, c.dim), c);
  tensor k = heads(linear(at(s, "k_lin"), x, c.dim), c);
  tensor v = heads(linear(at(s, "v_lin"), x, c.dim), c);
  tensor y;
  if (c.pad_token_id < 0) {
    y = attention(q, k, v, FULL);
  } else {
    tensor padding = equal(cast_float(tokens), constant(c.pad_token_id, 1));
    y = attention_bias(q, k, v, padding_bias(shift(neg(padding), 1)));
  }
  return linear(at(s, "out_lin"), reshape(transpose(y, 1, 2), dim(x, 0), dim(x, 1), c.dim), c.dim);
}

static tensor block(scope s, tensor x, tensor tokens, struct config c) {
  x = layer_norm_eps(at(s, "sa_layer_norm"), add(attend(at(s, "attention"), x, tokens, c), x), EPS);
  tensor h = linear(at(s, "ffn.lin2"), gelu(linear(at(s, "ffn.lin1"), x, c.hidden_dim)), c.dim);
  return layer_norm_eps(at(s, "output_layer_norm"), add(dropout(h, c.dropout), x), EPS);
}

/* tokens [B][T] to logits [B][T][vocab_size]. The last layer is the token table again. */
tensor predict(scope s, struct config c, tensor tokens) {
  s = init_normal(s, c.initializer_range);
  scope e = at(s, "distilbert.embeddings");
  tensor positions = parameter(at(e, "position_embeddings"), "weight", c.max_position_embeddings, c.dim);
  tensor x = embedding(at(e, "word_embeddings"), tokens, c.vocab_size, c.dim);
  x = layer_norm_eps(at(e, "LayerNorm"), add(x, slice(positions, 0, 0, dim(tokens, 1))), EPS);
  x = dropout(x, c.dropout);
  for (int i = 0; i < c.n_layers; i++) x = block(nth(s, "distilbert.transformer.layer", i), x, tokens, c);
  x = layer_norm_eps(at(s, "vocab_layer_norm"), gelu(linear(at(s, "vocab_transform"), x, c.dim)), EPS);
  tensor words = parameter(at(e, "word_embeddings"), "weight", c.vocab_size, c.dim);
  return add(matmul_transposed(x, words), parameter(init_zeros(at(s, "vocab_projector")), "bias", c.vocab_size));
}

tensor model(scope s, struct config c, tensor tokens, tensor targets) {
  return cross_entropy(predict(s, c, tokens), targets);
}
