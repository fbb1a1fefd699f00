/* T5 (Raffel et al., arXiv:1910.10683): the tensor names and the arithmetic of transformers'
 * T5ForConditionalGeneration, so that its checkpoints load from their model.safetensors. The encoder reads the tokens;
 * the decoder writes the targets, each from those before it, after token 0. Positions count through a bias of the
 * scores by their distance.
 *
 * B batch, T tokens of a sequence, C d_model, H num_heads, D d_kv. */
#include <accel/model.h>
#include <assert.h>
#include <math.h>
#include <stdlib.h>

struct config {
  int num_layers, num_decoder_layers, num_heads, d_model, d_kv, d_ff, vocab_size;
  int relative_attention_num_buckets, relative_attention_max_distance;
  double layer_norm_epsilon, initializer_factor;
  bool gated, tie_word_embeddings; /* gated: the feed-forward net of T5 1.1 */
  bool scale_decoder_outputs;      /* T5 1.1 does not, of which transformers 5 ties the head where a file lacks it */
};

const struct config defaults = {
    .relative_attention_num_buckets = 32,
    .relative_attention_max_distance = 128,
    .layer_norm_epsilon = 1e-6,
    .initializer_factor = 1,
    .gated = false,
    .tie_word_embeddings = true,
    .scale_decoder_outputs = true,
};

const char *const architectures[] = {"T5ForConditionalGeneration"};

/* What a published config.json says otherwise than by a field's own name. */
const struct published published[] = {
    {"model_type", .is = "t5"},
    {"feed_forward_proj", "gated", .is = "relu gated-gelu", .absent = "relu"},
    {"is_gated_act", "gated"},
    {"dense_act_fn", "gated", .is = "relu gelu_new"},
    {"pad_token_id", .is = "0"},
    {"decoder_start_token_id", .is = "0"},
    {"scale_decoder_outputs", "scale_decoder_outputs", .absent = "tie_word_embeddings"},
    {"n_positions"},
    {"is_encoder_decoder", .is = "true", .absent = "true"},
    {"is_decoder"},
};

/* The bucket of a key that stands `ahead` positions after its query: one each when near, then by the logarithm. */
static int bucket(int ahead, bool both_ways, struct config c) {
  int buckets = c.relative_attention_num_buckets / (both_ways ? 2 : 1), first = both_ways && ahead > 0 ? buckets : 0;
  int distance = both_ways ? abs(ahead) : ahead < 0 ? -ahead : 0, exact = buckets / 2;
  if (distance < exact) return first + distance;
  float share = logf((float)distance / exact) / logf((float)c.relative_attention_max_distance / exact);
  int far = exact + (int)(share * (buckets - exact));
  return first + (far < buckets - 1 ? far : buckets - 1);
}

/* [H][T][T]: what a score gains by its key's distance. Row t is row 0 moved to the right by t: all of them are in one
 * list of T rows of 2 T - 1 numbers, read as rows that are one number shorter. */
static inline tensor distances(scope s, int positions, bool both_ways, struct config c) {
  int count = 2 * positions - 1;
  int buckets[count];
  for (int i = 0; i < count; i++) buckets[i] = bucket(i < positions ? i : i - count, both_ways, c);
  tensor row = embedding(at(s, "relative_attention_bias"), int_table_of(count, buckets),
                         c.relative_attention_num_buckets, c.num_heads);
  row = reshape(transpose(row, 0, 1), c.num_heads, 1, count);
  tensor rows = reshape(add(row, constant(0, c.num_heads, positions, count)), c.num_heads, positions * count);
  rows = reshape(slice(rows, 1, 0, positions * (count - 1)), c.num_heads, positions, count - 1);
  return slice(rows, 2, 0, positions);
}

/* [B][T][H D] as [B][H][T][D]. */
static inline tensor heads(tensor x, struct config c) {
  return transpose(reshape(x, dim(x, 0), dim(x, 1), c.num_heads, c.d_kv), 1, 2);
}

static scope sized(scope s, double deviation, struct config c) {
  return init_normal(s, c.initializer_factor * deviation);
}

/* q, k and v [B][H][T][D] of attention of x over what `from` holds. */
struct attended {
  tensor q, k, v;
};

static inline struct attended project(scope s, tensor x, tensor from, struct config c) {
  int width = c.num_heads * c.d_kv;
  tensor q = linear_no_bias(at(sized(s, 1 / sqrt((double)c.d_model * c.d_kv), c), "q"), x, width);
  tensor k = linear_no_bias(at(sized(s, 1 / sqrt((double)c.d_model), c), "k"), from, width);
  tensor v = linear_no_bias(at(sized(s, 1 / sqrt((double)c.d_model), c), "v"), from, width);
  return (struct attended){.q = heads(q, c), .k = heads(k, c), .v = heads(v, c)};
}

/* What follows the heads' results. */
static inline tensor merge(scope s, tensor y, struct config c) {
  int width = c.num_heads * c.d_kv;
  y = transpose(y, 1, 2);
  return linear_no_bias(at(sized(s, 1 / sqrt((double)width), c), "o"), reshape(y, dim(y, 0), dim(y, 1), width),
                        c.d_model);
}

/* Attention of x over itself, with a bias of the scores [H][T][T]; these are not scaled. */
static inline tensor attend(scope s, tensor x, tensor bias, enum accel_mask mask, struct config c) {
  struct attended a = project(s, x, x, c);
  return merge(s, attention_bias_scaled(a.q, a.k, a.v, bias, mask, 1), c);
}

/* Over what the encoder gives. */
static inline tensor attend_to(scope s, tensor x, tensor memory, struct config c) {
  struct attended a = project(s, x, memory, c);
  return merge(s, attention_scaled(a.q, a.k, a.v, FULL, 1), c);
}

static inline tensor norm(scope s, tensor x, struct config c) {
  return rms_norm_eps(at(s, "layer_norm"), x, c.layer_norm_epsilon);
}

static inline tensor feed_forward(scope s, tensor x, struct config c) {
  scope in = at(sized(s, 1 / sqrt((double)c.d_model), c), "DenseReluDense");
  scope out = at(sized(s, 1 / sqrt((double)c.d_ff), c), "DenseReluDense");
  tensor h = norm(s, x, c);
  if (c.gated)
    h = mul(gelu_tanh(linear_no_bias(at(in, "wi_0"), h, c.d_ff)), linear_no_bias(at(in, "wi_1"), h, c.d_ff));
  else
    h = relu(linear_no_bias(at(in, "wi"), h, c.d_ff));
  return add(x, linear_no_bias(at(out, "wo"), h, c.d_model));
}

static inline tensor encoder_layers(scope s, tensor x, tensor bias, struct config c) {
  x = add(x, attend(at(s, "layer.0.SelfAttention"), norm(at(s, "layer.0"), x, c), bias, FULL, c));
  return feed_forward(at(s, "layer.1"), x, c);
}

static inline tensor decoder_layers(scope s, tensor x, tensor bias, tensor memory, struct config c) {
  x = add(x, attend(at(s, "layer.0.SelfAttention"), norm(at(s, "layer.0"), x, c), bias, CAUSAL, c));
  x = add(x, attend_to(at(s, "layer.1.EncDecAttention"), norm(at(s, "layer.1"), x, c), memory, c));
  return feed_forward(at(s, "layer.2"), x, c);
}

/* What continues to the next block: the first one has the distances' weights, and all use what they give. */
struct stream {
  tensor x, bias;
};

static struct stream first_encoder_block(scope s, tensor x, struct config c) {
  tensor bias = distances(at(s, "layer.0.SelfAttention"), dim(x, 1), true, c);
  return (struct stream){.x = encoder_layers(s, x, bias, c), .bias = bias};
}

static tensor encoder_block(scope s, tensor x, tensor bias, struct config c) {
  return encoder_layers(s, x, bias, c);
}

static struct stream first_decoder_block(scope s, tensor x, tensor memory, struct config c) {
  tensor bias = distances(at(s, "layer.0.SelfAttention"), dim(x, 1), false, c);
  return (struct stream){.x = decoder_layers(s, x, bias, memory, c), .bias = bias};
}

static tensor decoder_block(scope s, tensor x, tensor bias, tensor memory, struct config c) {
  return decoder_layers(s, x, bias, memory, c);
}

static tensor encode(scope s, tensor x, struct config c) {
  struct stream first = first_encoder_block(at(s, "block.0"), x, c);
  x = first.x;
  for (int i = 1; i < c.num_layers; i++) x = encoder_block(nth(s, "block", i), x, first.bias, c);
  return rms_norm_eps(at(s, "final_layer_norm"), x, c.layer_norm_epsilon);
}

static tensor decode(scope s, tensor x, tensor memory, struct config c) {
  struct stream first = first_decoder_block(at(s, "block.0"), x, memory, c);
  x = first.x;
  for (int i = 1; i < c.num_decoder_layers; i++) x = decoder_block(nth(s, "block", i), x, first.bias, memory, c);
  return rms_norm_eps(at(s, "final_layer_norm"), x, c.layer_norm_epsilon);
}

/* The targets moved to the right, after token 0. */
static inline tensor shifted(tensor targets) {
  return slice(pad(targets, 1, 1, 0), 1, 0, dim(targets, 1));
}

tensor model(scope s, struct config c, tensor tokens, tensor targets) {
  s = init_normal(s, c.initializer_factor);
  tensor memory = encode(at(s, "encoder"), embedding(at(s, "shared"), tokens, c.vocab_size, c.d_model), c);
  tensor written = embedding(at(s, "shared"), shifted(targets), c.vocab_size, c.d_model);
  tensor x = decode(at(s, "decoder"), written, memory, c);
  scope head = c.tie_word_embeddings ? at(s, "shared") : at(s, "lm_head");
  assert((c.tie_word_embeddings || !c.scale_decoder_outputs) &&
         "without tie_word_embeddings, scale_decoder_outputs is false");
  if (c.scale_decoder_outputs) x = scale(x, 1 / sqrt((double)c.d_model));
  return cross_entropy(matmul_transposed(x, parameter(head, "weight", c.vocab_size, c.d_model)), targets);
}
