/* ALBERT (Lan et al., arXiv:1909.11942): the tensor names and the arithmetic of transformers' AlbertForMaskedLM, so
 * that its checkpoints load from their model.safetensors. Layers of a group are one layer's weights used again and
 * again, and tokens are embedded in fewer columns than the layers have. Tokens that are pad_token_id are padding, which
 * nobody attends to; -1: none is. Targets of -100 do not count.
 *
 * B batch, T tokens of a sequence, C hidden_size, E embedding_size, H heads, D = C / H. */
#include <accel/model.h>

struct config {
  int num_hidden_layers, num_hidden_groups, inner_group_num, num_attention_heads;
  int embedding_size, hidden_size, intermediate_size;
  int vocab_size, max_position_embeddings, type_vocab_size, pad_token_id;
  double layer_norm_eps, initializer_range, hidden_dropout_prob;
};

const struct config defaults = {
    .num_hidden_groups = 1,
    .inner_group_num = 1,
    .embedding_size = 128,
    .max_position_embeddings = 512,
    .type_vocab_size = 2,
    .pad_token_id = -1,
    .layer_norm_eps = 1e-12,
    .initializer_range = 0.02,
    .hidden_dropout_prob = 0,
};

const char *const architectures[] = {"AlbertForMaskedLM"};

/* Tensors of other classes that published files have. */
const char *const other_heads[] = {"albert.pooler.*", "sop_classifier.*"};

/* What a published config.json says otherwise than by a field's own name. */
const struct published published[] = {
    {"model_type", .is = "albert"},
    {"hidden_act", .is = "gelu_new"},
    {"position_embedding_type", .is = "absolute"},
    {"tie_word_embeddings", .is = "true"},
    {"net_structure_type", .is = "0"},
    {"num_memory_blocks", .is = "0"},
    {"gap_size", .is = "0"},
    {"down_scale_factor", .is = "1"},
};

/* [B][T][C] as [B][H][T][D]. */
static tensor heads(tensor x, struct config c) {
  x = reshape(x, dim(x, 0), dim(x, 1), c.num_attention_heads, c.hidden_size / c.num_attention_heads);
  return transpose(x, 1, 2);
}

/* tokens [B][T]: whose keys count. */
static tensor attend(scope s, tensor x, tensor tokens, struct config c) {
  tensor q = heads(linear(at(s, "query"), x, c.hidden_size), c);
  tensor k = heads(linear(at(s, "key"), x, c.hidden_size), c);
  tensor v = heads(linear(at(s, "value"), x, c.hidden_size), c);
  tensor y;
  if (c.pad_token_id < 0) {
    y = attention(q, k, v, FULL);
  } else {
    tensor padding = equal(cast_float(tokens), constant(c.pad_token_id, 1));
    y = attention_bias(q, k, v, padding_bias(shift(neg(padding), 1)));
  }
  y = linear(at(s, "dense"), reshape(transpose(y, 1, 2), dim(x, 0), dim(x, 1), c.hidden_size), c.hidden_size);
  return layer_norm_eps(at(s, "LayerNorm"), add(x, dropout(y, c.hidden_dropout_prob)), c.layer_norm_eps);
}

static tensor layer(scope s, tensor x, tensor tokens, struct config c) {
  x = attend(at(s, "attention"), x, tokens, c);
  tensor h = linear(at(s, "ffn_output"), gelu_tanh(linear(at(s, "ffn"), x, c.intermediate_size)), c.hidden_size);
  return layer_norm_eps(at(s, "full_layer_layer_norm"), add(h, x), c.layer_norm_eps);
}

static tensor embed(scope s, tensor tokens, struct config c) {
  tensor positions = parameter(at(s, "position_embeddings"), "weight", c.max_position_embeddings, c.embedding_size);
  tensor segments = parameter(at(s, "token_type_embeddings"), "weight", c.type_vocab_size, c.embedding_size);
  tensor x = embedding(at(s, "word_embeddings"), tokens, c.vocab_size, c.embedding_size);
  x = add(add(x, slice(segments, 0, 0, 1)), slice(positions, 0, 0, dim(tokens, 1)));
  return dropout(layer_norm_eps(at(s, "LayerNorm"), x, c.layer_norm_eps), c.hidden_dropout_prob);
}

/* tokens [B][T] to what the last layer gives, [B][T][C]. */
static tensor encode(scope s, tensor tokens, struct config c) {
  tensor x = linear(at(s, "encoder.embedding_hidden_mapping_in"), embed(at(s, "embeddings"), tokens, c), c.hidden_size);
  for (int i = 0; i < c.num_hidden_layers; i++) {
    scope group = nth(s, "encoder.albert_layer_groups", i * c.num_hidden_groups / c.num_hidden_layers);
    for (int j = 0; j < c.inner_group_num; j++) x = layer(nth(group, "albert_layers", j), x, tokens, c);
  }
  return x;
}

/* tokens [B][T] to logits [B][T][vocab_size]. The last layer is the token table again. */
tensor predict(scope s, struct config c, tensor tokens) {
  s = init_normal(s, c.initializer_range);
  tensor x = encode(at(s, "albert"), tokens, c);
  scope head = at(s, "predictions");
  x = gelu_tanh(linear(at(head, "dense"), x, c.embedding_size));
  x = layer_norm_eps(at(head, "LayerNorm"), x, c.layer_norm_eps);
  tensor words = parameter(at(s, "albert.embeddings.word_embeddings"), "weight", c.vocab_size, c.embedding_size);
  return add(matmul_transposed(x, words), parameter(init_zeros(head), "bias", c.vocab_size));
}

tensor model(scope s, struct config c, tensor tokens, tensor targets) {
  return cross_entropy(predict(s, c, tokens), targets);
}
