/* ConvNeXt (Liu et al., arXiv:2201.03545): the tensor names and the arithmetic of transformers'
 * ConvNextForImageClassification, so that its checkpoints load from their model.safetensors. A row of the table is an
 * image, [channels][size][size].
 *
 * B batch, C channels of a stage, S rows and columns of its images. */
#include <accel/model.h>

enum { STAGES = 4 };

struct config {
  int image_size, patch_size, num_channels, num_labels;
  int hidden_sizes[STAGES], depths[STAGES];
  double layer_norm_eps, initializer_range, layer_scale_init_value, drop_path_rate;
};

const struct config defaults = {
    .patch_size = 4,
    .num_channels = 3,
    .hidden_sizes = {96, 192, 384, 768},
    .depths = {3, 3, 9, 3},
    .layer_norm_eps = 1e-12,
    .initializer_range = 0.02,
    .layer_scale_init_value = 1e-6,
    .drop_path_rate = 0,
};

const char *const architectures[] = {"ConvNextForImageClassification"};

/* What a published config.json says otherwise than by a field's own name. */
const struct published published[] = {
    {"model_type", .is = "convnext"},
    {"num_labels id2label.#", "num_labels"},
    {"num_stages", .is = "4"},
    {"hidden_act", .is = "gelu"},
    {"stage_names.*"},
    {"out_features.*"},
    {"out_indices.*"},
};

struct published_inputs published_inputs(struct config c) {
  return (struct published_inputs){{{"features", {c.num_channels, c.image_size, c.image_size}}}};
}

#define EPS 1e-6

/* Each position's channels normalized: [B][C][S][S] as [B][S][S][C]. */
static tensor norm_last(scope s, tensor x) {
  return layer_norm_eps(s, transpose(transpose(x, 1, 2), 2, 3), EPS);
}

/* [B][S][S][C] as [B][C][S][S]. */
static tensor channels_first(tensor x) {
  return transpose(transpose(x, 2, 3), 1, 2);
}

/* A part of the samples goes around the layer, and what is left counts for more (arXiv:1603.09382). */
static tensor drop_path(tensor x, double rate) {
  return rate > 0 ? mul(x, dropout(constant(1, dim(x, 0), 1, 1, 1), rate)) : x;
}

static tensor layer(scope s, tensor x, double drop, struct config c) {
  int channels = dim(x, 1);
  tensor h = norm_last(at(s, "layernorm"), conv2d_grouped(at(s, "dwconv"), x, channels, 7, 1, 3, 1, channels));
  h = linear(at(s, "pwconv2"), gelu(linear(at(s, "pwconv1"), h, 4 * channels)), channels);
  scope start = init_constant(s, c.layer_scale_init_value);
  h = channels_first(mul(h, parameter(start, "layer_scale_parameter", channels)));
  return add(x, drop_path(h, drop));
}

static tensor stage(scope s, tensor x, int number, struct config c) {
  int before = 0, all = 0;
  for (int i = 0; i < STAGES; i++) {
    if (i < number) before += c.depths[i];
    all += c.depths[i];
  }
  if (number > 0) {
    x = channels_first(norm_last(at(s, "downsampling_layer.0"), x));
    x = conv2d(at(s, "downsampling_layer.1"), x, c.hidden_sizes[number], 2, 2, 0);
  }
  for (int i = 0; i < c.depths[number]; i++)
    x = layer(nth(s, "layers", i), x, all > 1 ? c.drop_path_rate * (before + i) / (all - 1) : 0, c);
  return x;
}

/* features [B][channels S S] to logits [B][num_labels]. */
tensor predict(scope s, struct config c, tensor features) {
  s = init_normal(s, c.initializer_range);
  tensor x = reshape(features, dim(features, 0), c.num_channels, c.image_size, c.image_size);
  x = conv2d(at(s, "convnext.embeddings.patch_embeddings"), x, c.hidden_sizes[0], c.patch_size, c.patch_size, 0);
  x = channels_first(norm_last(at(s, "convnext.embeddings.layernorm"), x));
  for (int i = 0; i < STAGES; i++) x = stage(nth(s, "convnext.encoder.stages", i), x, i, c);
  x = layer_norm_eps(at(s, "convnext.layernorm"), mean(mean(x, 3), 2), c.layer_norm_eps);
  return linear(at(s, "classifier"), x, c.num_labels);
}

tensor model(scope s, struct config c, tensor features, tensor labels) {
  return cross_entropy(predict(s, c, features), labels);
}
