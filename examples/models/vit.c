/* The Vision Transformer (Dosovitskiy et al., arXiv:2010.11929): the tensor names and the arithmetic of transformers'
 * ViTForImageClassification, so that its checkpoints load from their model.safetensors. A row of the table is an image,
 * [channels][size][size].
 *
 * B batch, S image_size, P patch_size, N = (S / P)^2 patches, C hidden_size, H heads, D = C / H. */
#include <accel/model.h>

struct config {
  int num_hidden_layers, num_attention_heads, hidden_size, intermediate_size;
  int image_size, patch_size, num_channels, num_labels;
  double layer_norm_eps, initializer_range;
};

const struct config defaults = {.num_channels = 3, .layer_norm_eps = 1e-12, .initializer_range = 0.02};

const char *const architectures[] = {"ViTForImageClassification"};

/* What a published config.json says otherwise than by a field's own name. */
const struct published published[] = {
    {"model_type", .is = "vit"},  {"num_labels id2label.#", "num_labels"},
    {"hidden_act", .is = "gelu"}, {"qkv_bias", .is = "true"},
    {"encoder_stride"},           {"pooler_*"},
};

struct published_inputs published_inputs(struct config c) {
  return (struct published_inputs){{{"features", {c.num_channels, c.image_size, c.image_size}}}};
}

/* A convolution of size and stride P: each patch, [channels][P][P], times the weights. [B][S * S * channels] to
 * [B][N][C]. */
static tensor patches(scope s, tensor images, struct config c) {
  int p = c.patch_size, along = c.image_size / p, numbers = c.num_channels * p * p;
  tensor x = reshape(images, dim(images, 0), c.num_channels, along, p, along, p);
  x = transpose(transpose(transpose(x, 1, 2), 2, 4), 3, 4); /* [B][along][along][channels][P][P] */
  tensor weight = parameter(s, "weight", c.hidden_size, c.num_channels, p, p);
  tensor y =
      matmul_transposed(reshape(x, dim(images, 0), along * along, numbers), reshape(weight, c.hidden_size, numbers));
  return add(y, parameter(init_zeros(s), "bias", c.hidden_size));
}

/* [B][N + 1][C] as [B][H][N + 1][D]. */
static tensor heads(tensor x, struct config c) {
  x = reshape(x, dim(x, 0), dim(x, 1), c.num_attention_heads, c.hidden_size / c.num_attention_heads);
  return transpose(x, 1, 2);
}

static tensor attend(scope s, tensor x, struct config c) {
  tensor q = heads(linear(at(s, "attention.query"), x, c.hidden_size), c);
  tensor k = heads(linear(at(s, "attention.key"), x, c.hidden_size), c);
  tensor v = heads(linear(at(s, "attention.value"), x, c.hidden_size), c);
  tensor y = reshape(transpose(attention(q, k, v, FULL), 1, 2), dim(x, 0), dim(x, 1), c.hidden_size);
  return linear(at(s, "output.dense"), y, c.hidden_size);
}

static tensor layer(scope s, tensor x, struct config c) {
  x = add(x, attend(at(s, "attention"), layer_norm_eps(at(s, "layernorm_before"), x, c.layer_norm_eps), c));
  tensor h = layer_norm_eps(at(s, "layernorm_after"), x, c.layer_norm_eps);
  h = gelu(linear(at(s, "intermediate.dense"), h, c.intermediate_size));
  return add(x, linear(at(s, "output.dense"), h, c.hidden_size));
}

/* Patches after a token that stands for the class, each with what its position adds. */
static tensor embed(scope s, tensor images, struct config c) {
  tensor x = patches(at(s, "patch_embeddings.projection"), images, c);
  tensor class = parameter(s, "cls_token", 1, 1, c.hidden_size);
  class = add(class, constant(0, dim(x, 0), 1, c.hidden_size));
  x = concat(1, class, x);
  return add(x, parameter(s, "position_embeddings", 1, dim(x, 1), c.hidden_size));
}

/* features [B][channels S S] to logits [B][num_labels]. */
tensor predict(scope s, struct config c, tensor features) {
  s = init_normal(s, c.initializer_range);
  tensor x = embed(at(s, "vit.embeddings"), features, c);
  for (int i = 0; i < c.num_hidden_layers; i++) x = layer(nth(s, "vit.encoder.layer", i), x, c);
  x = layer_norm_eps(at(s, "vit.layernorm"), x, c.layer_norm_eps);
  return linear(at(s, "classifier"), reshape(slice(x, 1, 0, 1), dim(x, 0), c.hidden_size), c.num_labels);
}

tensor model(scope s, struct config c, tensor features, tensor labels) {
  return cross_entropy(predict(s, c, features), labels);
}
