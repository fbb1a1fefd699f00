/* CLIP (Radford et al., arXiv:2103.00020): the tensor names and the arithmetic of transformers' CLIPModel, so that its
 * checkpoints load from their model.safetensors. An image and a text belong together, and are distinguished from the
 * others of their batch: data.inputs names pixel_values, [channels][size][size], and input_ids, int32 [positions].
 *
 * B batch, T tokens of a text, N patches of an image, C hidden_size of a tower, H heads, P projection_dim. */
#include <accel/model.h>

struct text_config {
  int num_hidden_layers, num_attention_heads, hidden_size, intermediate_size;
  int vocab_size, max_position_embeddings, eos_token_id; /* 2: a text ends with its largest token */
  double layer_norm_eps, initializer_range;
};

struct vision_config {
  int num_hidden_layers, num_attention_heads, hidden_size, intermediate_size;
  int image_size, patch_size, num_channels;
  double layer_norm_eps, initializer_range;
};

enum activation { ACTIVATION_QUICK_GELU, ACTIVATION_GELU };

struct config {
  struct text_config text_config;
  struct vision_config vision_config;
  enum activation text_activation, vision_activation;
  int projection_dim;
  double logit_scale_init_value;
};

const struct config defaults = {
    .text_config = {.max_position_embeddings = 77,
                    .eos_token_id = 49407,
                    .layer_norm_eps = 1e-5,
                    .initializer_range = 0.02},
    .vision_config = {.num_channels = 3, .layer_norm_eps = 1e-5, .initializer_range = 0.02},
    .text_activation = ACTIVATION_QUICK_GELU,
    .vision_activation = ACTIVATION_QUICK_GELU,
    .projection_dim = 512,
    .logit_scale_init_value = 2.6592,
};

const char *const architectures[] = {"CLIPModel"};

/* What a published config.json says otherwise than by a field's own name. */
const struct published published[] = {
    {"model_type", .is = "clip"},
    {"text_config.hidden_act", "text_activation", .absent = "quick_gelu"},
    {"vision_config.hidden_act", "vision_activation", .absent = "quick_gelu"},
    {"text_config.eos_token_id", "text_config.eos_token_id", .absent = "49407"},
    {"text_config_dict.*"}, /* copies, which the class reads no more */
    {"vision_config_dict.*"},
    {"*.projection_dim"}, /* of the towers alone */
    {"*.tie_word_embeddings"},
};

struct published_inputs published_inputs(struct config c) {
  return (struct published_inputs){
      {{"pixel_values", {c.vision_config.num_channels, c.vision_config.image_size, c.vision_config.image_size}},
       {"input_ids", {c.text_config.max_position_embeddings}, .whole = true}}};
}

/* What both towers have. */
struct tower {
  int layers, heads, columns, inner;
  double eps;
  enum activation activation;
  enum accel_mask mask;
};

static tensor norm(scope s, tensor x, struct tower t) {
  return layer_norm_eps(s, x, t.eps);
}

/* [B][T][C] as [B][H][T][C / H]. */
static tensor heads(tensor x, struct tower t) {
  return transpose(reshape(x, dim(x, 0), dim(x, 1), t.heads, t.columns / t.heads), 1, 2);
}

static tensor attend(scope s, tensor x, struct tower t) {
  tensor q = heads(linear(at(s, "q_proj"), x, t.columns), t);
  tensor k = heads(linear(at(s, "k_proj"), x, t.columns), t);
  tensor v = heads(linear(at(s, "v_proj"), x, t.columns), t);
  tensor y = reshape(transpose(attention(q, k, v, t.mask), 1, 2), dim(x, 0), dim(x, 1), t.columns);
  return linear(at(s, "out_proj"), y, t.columns);
}

static tensor mlp(scope s, tensor x, struct tower t) {
  tensor h = linear(at(s, "fc1"), x, t.inner);
  h = t.activation == ACTIVATION_GELU ? gelu(h) : mul(h, sigmoid(scale(h, 1.702)));
  return linear(at(s, "fc2"), h, t.columns);
}

static tensor layer(scope s, tensor x, struct tower t) {
  x = add(x, attend(at(s, "self_attn"), norm(at(s, "layer_norm1"), x, t), t));
  return add(x, mlp(at(s, "mlp"), norm(at(s, "layer_norm2"), x, t), t));
}

static tensor layers(scope s, tensor x, struct tower t) {
  for (int i = 0; i < t.layers; i++) x = layer(nth(s, "encoder.layers", i), x, t);
  return x;
}

/* The row at the first of the largest of `score` [B][T]: x [B][T][C] gives [B][C]. */
static tensor row_at(tensor x, tensor score) {
  tensor here = one_hot(argmax(score, 1), dim(x, 1));
  return sum(mul(x, reshape(here, dim(x, 0), dim(x, 1), 1)), 1);
}

/* input_ids [B][T] to [B][P]. */
static tensor text(scope s, tensor tokens, struct config c) {
  struct text_config of = c.text_config;
  struct tower t = {of.num_hidden_layers, of.num_attention_heads, of.hidden_size, of.intermediate_size,
                    of.layer_norm_eps,    c.text_activation,      CAUSAL};
  scope inner = init_normal(at(s, "text_model"), of.initializer_range), e = at(inner, "embeddings");
  tensor positions = parameter(at(e, "position_embedding"), "weight", of.max_position_embeddings, t.columns);
  tensor x = embedding(at(e, "token_embedding"), tokens, of.vocab_size, t.columns);
  x = layers(inner, add(x, slice(positions, 0, 0, dim(tokens, 1))), t);
  x = norm(at(inner, "final_layer_norm"), x, t);
  tensor ids = cast_float(tokens);
  x = row_at(x, of.eos_token_id == 2 ? ids : equal(ids, constant(of.eos_token_id, 1)));
  return linear_no_bias(at(init_normal(s, of.initializer_range), "text_projection"), x, c.projection_dim);
}

/* pixel_values [B][channels][S][S] to [B][P]. */
static tensor vision(scope s, tensor pixels, struct config c) {
  struct vision_config of = c.vision_config;
  struct tower t = {of.num_hidden_layers,
                    of.num_attention_heads,
                    of.hidden_size,
                    of.intermediate_size,
                    of.layer_norm_eps,
                    c.vision_activation,
                    FULL};
  scope inner = init_normal(at(s, "vision_model"), of.initializer_range), e = at(inner, "embeddings");
  tensor x = conv2d_no_bias(at(e, "patch_embedding"), pixels, t.columns, of.patch_size, of.patch_size, 0);
  x = transpose(reshape(x, dim(x, 0), t.columns, -1), 1, 2);
  tensor class = add(parameter(e, "class_embedding", t.columns), constant(0, dim(x, 0), 1, 1));
  x = concat(1, class, x);
  x = add(x, parameter(at(e, "position_embedding"), "weight", dim(x, 1), t.columns));
  x = layers(inner, norm(at(inner, "pre_layrnorm"), x, t), t); /* as the tensor is spelled */
  x = norm(at(inner, "post_layernorm"), reshape(slice(x, 1, 0, 1), dim(x, 0), t.columns), t);
  return linear_no_bias(at(init_normal(s, of.initializer_range), "visual_projection"), x, c.projection_dim);
}

/* Similarities of each text with each image, [B][B], times the learned temperature. */
tensor predict(scope s, struct config c, tensor pixel_values, tensor input_ids) {
  tensor size = exp_of(parameter_of(init_constant(s, c.logit_scale_init_value), "logit_scale", 0));
  tensor texts = normalize(text(s, input_ids, c)), images = normalize(vision(s, pixel_values, c));
  return mul(matmul_transposed(texts, images), size);
}

tensor model(scope s, struct config c, tensor pixel_values, tensor input_ids) {
  return clip_loss(predict(s, c, pixel_values, input_ids));
}
