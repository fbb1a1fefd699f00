/* Whisper (Radford et al., arXiv:2212.04356): the tensor names and the arithmetic of transformers'
 * WhisperForConditionalGeneration, so that its checkpoints load from their model.safetensors. The encoder reads a
 * log-mel spectrogram; the decoder writes the labels, each from those before it, after decoder_start_token_id. Labels
 * of -100 do not count.
 *
 * B batch, F frames of the spectrogram, S source positions (half as many), T labels, C d_model, H heads. */
#include <accel/model.h>
#include <assert.h>
#include <math.h>

struct config {
  int encoder_layers, encoder_attention_heads, encoder_ffn_dim;
  int decoder_layers, decoder_attention_heads, decoder_ffn_dim;
  int d_model, vocab_size, num_mel_bins, max_source_positions, max_target_positions;
  int pad_token_id, decoder_start_token_id;
  double init_std, dropout;
  bool tie_word_embeddings;
};

const struct config defaults = {
    .num_mel_bins = 80,
    .max_source_positions = 1500,
    .max_target_positions = 448,
    .pad_token_id = 50256,
    .decoder_start_token_id = 50257,
    .init_std = 0.02,
    .dropout = 0,
    .tie_word_embeddings = true,
};

const char *const architectures[] = {"WhisperForConditionalGeneration"};

/* What a published config.json says otherwise than by a field's own name. */
const struct published published[] = {
    {"model_type", .is = "whisper"},
    {"vocab_size", "vocab_size", .absent = "51865"},
    {"d_model", "d_model", .absent = "384"},
    {"encoder_layers", "encoder_layers", .absent = "4"},
    {"encoder_attention_heads", "encoder_attention_heads", .absent = "6"},
    {"encoder_ffn_dim", "encoder_ffn_dim", .absent = "1536"},
    {"decoder_layers", "decoder_layers", .absent = "4"},
    {"decoder_attention_heads", "decoder_attention_heads", .absent = "6"},
    {"decoder_ffn_dim", "decoder_ffn_dim", .absent = "1536"},
    {"num_mel_bins", "num_mel_bins", .absent = "80"},
    {"max_source_positions", "max_source_positions", .absent = "1500"},
    {"max_target_positions", "max_target_positions", .absent = "448"},
    {"pad_token_id", "pad_token_id", .absent = "50256"},
    {"decoder_start_token_id", "decoder_start_token_id", .absent = "50257"},
    {"tie_word_embeddings", "tie_word_embeddings", .absent = "true"},
    {"activation_function", .is = "gelu"},
    {"apply_spec_augment", .is = "false"},
    {"mask_*"},
    {"scale_embedding"}, /* the class does not scale */
    {"classifier_proj_size"},
    {"use_weighted_layer_sum"},
    {"median_filter_width"},
    {"num_hidden_layers"},
    {"alignment_heads*"},
};

struct published_inputs published_inputs(struct config c) {
  return (struct published_inputs){{{"input_features", {c.num_mel_bins, 2 * c.max_source_positions}},
                                    {"labels", {c.max_target_positions}, .whole = true}}};
}

/* [B][T][C] as [B][heads][T][C / heads]. */
static inline tensor heads(tensor x, int count) {
  return transpose(reshape(x, dim(x, 0), dim(x, 1), count, dim(x, 2) / count), 1, 2);
}

/* Attention of x over what `from` holds. */
static inline tensor attend(scope s, tensor x, tensor from, int count, enum accel_mask mask, struct config c) {
  tensor q = heads(linear(at(s, "q_proj"), x, c.d_model), count);
  tensor k = heads(linear_no_bias(at(s, "k_proj"), from, c.d_model), count);
  tensor v = heads(linear(at(s, "v_proj"), from, c.d_model), count);
  tensor y = transpose(attention(q, k, v, mask), 1, 2);
  return dropout(linear(at(s, "out_proj"), reshape(y, dim(x, 0), dim(x, 1), c.d_model), c.d_model), c.dropout);
}

static inline tensor feed_forward(scope s, tensor x, int inner, struct config c) {
  tensor h = gelu(linear(at(s, "fc1"), layer_norm(at(s, "final_layer_norm"), x), inner));
  return add(x, dropout(linear(at(s, "fc2"), h, c.d_model), c.dropout));
}

static tensor encoder_layer(scope s, tensor x, struct config c) {
  tensor h = layer_norm(at(s, "self_attn_layer_norm"), x);
  x = add(x, attend(at(s, "self_attn"), h, h, c.encoder_attention_heads, FULL, c));
  return feed_forward(s, x, c.encoder_ffn_dim, c);
}

static tensor decoder_layer(scope s, tensor x, tensor memory, struct config c) {
  tensor h = layer_norm(at(s, "self_attn_layer_norm"), x);
  x = add(x, attend(at(s, "self_attn"), h, h, c.decoder_attention_heads, CAUSAL, c));
  h = layer_norm(at(s, "encoder_attn_layer_norm"), x);
  x = add(x, attend(at(s, "encoder_attn"), h, memory, c.decoder_attention_heads, FULL, c));
  return feed_forward(s, x, c.decoder_ffn_dim, c);
}

/* input_features [B][num_mel_bins][F] to [B][S][C]. The positions are waves from 1 to 10000 positions long, over 2 pi,
 * which do not learn. */
static tensor encode(scope s, tensor features, struct config c) {
  assert(dim(features, 1) == c.num_mel_bins && dim(features, 2) == 2 * c.max_source_positions &&
         "input_features is [num_mel_bins][2 max_source_positions]");
  scope waves = init_sinusoid(at(s, "embed_positions"), pow(10000, 1.0 / fmax(1, c.d_model / 2 - 1)));
  tensor x = gelu(conv1d(at(s, "conv1"), features, c.d_model, 3, 1, 1));
  x = transpose(gelu(conv1d(at(s, "conv2"), x, c.d_model, 3, 2, 1)), 1, 2);
  x = dropout(add(x, buffer(waves, "weight", c.max_source_positions, c.d_model)), c.dropout);
  for (int i = 0; i < c.encoder_layers; i++) x = encoder_layer(nth(s, "layers", i), x, c);
  return layer_norm(at(s, "layer_norm"), x);
}

/* The labels moved to the right, after decoder_start_token_id; padding where none counts. */
static inline tensor shifted(tensor labels, struct config c) {
  tensor tokens = cast_float(labels);
  tokens = where(equal(tokens, constant(-100, 1)), constant(c.pad_token_id, 1), tokens);
  tokens = slice(pad(shift(tokens, -c.decoder_start_token_id), 1, 1, 0), 1, 0, dim(labels, 1));
  return cast_index(shift(tokens, c.decoder_start_token_id), c.vocab_size);
}

/* tokens [B][T] over memory [B][S][C] to [B][T][C]. The row of padding does not learn from where it is read. */
static tensor decode(scope s, tensor tokens, tensor memory, struct config c) {
  assert(dim(tokens, 1) <= c.max_target_positions && "there are at most max_target_positions labels");
  tensor positions = parameter(at(s, "embed_positions"), "weight", c.max_target_positions, c.d_model);
  tensor x = embedding(at(s, "embed_tokens"), tokens, c.vocab_size, c.d_model);
  tensor is_padding = equal(cast_float(tokens), constant(c.pad_token_id, 1));
  x = where(reshape(is_padding, dim(tokens, 0), dim(tokens, 1), 1), detach(x), x);
  x = dropout(add(x, slice(positions, 0, 0, dim(tokens, 1))), c.dropout);
  for (int i = 0; i < c.decoder_layers; i++) x = decoder_layer(nth(s, "layers", i), x, memory, c);
  return layer_norm(at(s, "layer_norm"), x);
}

/* The logits of the token after each of `tokens` [B][T], of which the first is decoder_start_token_id. */
tensor predict(scope s, struct config c, tensor tokens, tensor input_features) {
  s = init_normal(s, c.init_std);
  tensor x = decode(at(s, "model.decoder"), tokens, encode(at(s, "model.encoder"), input_features, c), c);
  scope head = c.tie_word_embeddings ? at(s, "model.decoder.embed_tokens") : at(s, "proj_out");
  return matmul_transposed(x, parameter(head, "weight", c.vocab_size, c.d_model));
}

tensor model(scope s, struct config c, tensor input_features, tensor labels) {
  return cross_entropy(predict(s, c, shifted(labels, c), input_features), labels);
}
