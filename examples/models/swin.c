/* Swin Transformer (Liu et al., arXiv:2103.14030): the tensor names and the arithmetic of transformers'
 * SwinForImageClassification, so that its checkpoints load from their model.safetensors. Attention is within windows of
 * W x W patches, which every second layer shifts by half a window. A row of the table is an image,
 * [channels][size][size].
 *
 * B batch, S rows and columns of patches, C columns of a patch, H heads, W window_size, N windows of an image. */
#include <accel/model.h>

enum { MOST_STAGES = 4 };

struct config {
  int image_size, patch_size, num_channels, num_labels, num_layers, embed_dim, window_size;
  int depths[MOST_STAGES], num_heads[MOST_STAGES];
  double mlp_ratio, layer_norm_eps, initializer_range, hidden_dropout_prob, drop_path_rate;
};

const struct config defaults = {
    .patch_size = 4,
    .num_channels = 3,
    .num_layers = 4,
    .embed_dim = 96,
    .window_size = 7,
    .depths = {2, 2, 6, 2},
    .num_heads = {3, 6, 12, 24},
    .mlp_ratio = 4,
    .layer_norm_eps = 1e-5,
    .initializer_range = 0.02,
    .hidden_dropout_prob = 0,
    .drop_path_rate = 0,
};

const char *const architectures[] = {"SwinForImageClassification"};

/* What a published config.json says otherwise than by a field's own name. */
const struct published published[] = {
    {"model_type", .is = "swin"},
    {"num_labels id2label.#", "num_labels"},
    {"num_layers depths.#", "num_layers"},
    {"hidden_act", .is = "gelu"},
    {"qkv_bias", .is = "true"},
    {"use_absolute_embeddings", .is = "false"},
    {"hidden_size"}, /* of the last stage */
    {"encoder_stride"},
    {"path_norm", .is = "true"},
    {"stage_names.*"},
    {"out_features.*"},
    {"out_indices.*"},
};

struct published_inputs published_inputs(struct config c) {
  return (struct published_inputs){{{"features", {c.num_channels, c.image_size, c.image_size}}}};
}

/* ---- Windows: images are [B][S][S][C], with S a multiple of W ---- */

/* [B][S][S][C] as [B N][W W][C]. */
static tensor windows(tensor x, int window) {
  int along = dim(x, 1) / window, columns = dim(x, 3);
  x = reshape(x, dim(x, 0), along, window, along, window, columns);
  return reshape(transpose(x, 2, 3), -1, window * window, columns);
}

/* The other way. */
static tensor images(tensor x, int window, int size) {
  int along = size / window, columns = dim(x, 2);
  x = reshape(x, -1, along, along, window, window, columns);
  return reshape(transpose(x, 2, 3), -1, size, size, columns);
}

/* Along one axis, which of three regions a position comes from, by what a shift brings together; float32 [S]. */
static tensor regions(int size, int window, int step) {
  tensor position = cast_float(arange(size));
  return add(greater_equal(position, constant(size - window, 1)), greater_equal(position, constant(size - step, 1)));
}

/* [B N][1][W W][W W]: -100 where a key comes from another region than its query. */
static tensor across_regions(int batch, int size, int window, int step) {
  tensor region = regions(size, window, step);
  region = add(scale(reshape(region, size, 1), 3), reshape(region, 1, size));
  region = reshape(windows(reshape(region, 1, size, size, 1), window), -1, window * window);
  int count = dim(region, 0), area = window * window;
  tensor same = equal(reshape(region, count, 1, area), reshape(region, count, area, 1));
  tensor bias = scale(shift(same, -1), 100);
  return reshape(add(reshape(bias, 1, count, 1, area, area), constant(0, batch, 1, 1, 1, 1)), batch * count, 1, area,
                 area);
}

/* [H][W W][W W]: what a score gains by how far its key is from its query, down and across. */
static tensor distances(scope s, int window, int heads) {
  int area = window * window, across = 2 * window - 1;
  int index[area * area];
  for (int q = 0; q < area; q++)
    for (int k = 0; k < area; k++) {
      int down = q / window - k / window + window - 1, right = q % window - k % window + window - 1;
      index[q * area + k] = down * across + right;
    }
  tensor table = parameter(init_zeros(s), "relative_position_bias_table", across * across, heads);
  return reshape(transpose(take(table, int_table_of(area * area, index)), 0, 1), heads, area, area);
}

/* ---- Layers ---- */

/* [B N][W W][C] as [B N][H][W W][C / H]. */
static tensor heads(tensor x, int count) {
  return transpose(reshape(x, dim(x, 0), dim(x, 1), count, dim(x, 2) / count), 1, 2);
}

static tensor attend(scope s, tensor x, tensor bias, int count) {
  int columns = dim(x, 2);
  tensor q = heads(linear(at(s, "self.query"), x, columns), count);
  tensor k = heads(linear(at(s, "self.key"), x, columns), count);
  tensor v = heads(linear(at(s, "self.value"), x, columns), count);
  tensor y = reshape(transpose(attention_bias(q, k, v, bias), 1, 2), dim(x, 0), dim(x, 1), columns);
  return linear(at(s, "output.dense"), y, columns);
}

/* A part of the samples goes around the layer, and what is left counts for more (arXiv:1603.09382). */
static tensor drop_path(tensor x, double rate) {
  return rate > 0 ? mul(x, dropout(constant(1, dim(x, 0), 1, 1, 1), rate)) : x;
}

/* Attention within windows of x [B][S][S][C], which ends in zeros where S is no multiple of W. */
static tensor attend_windows(scope s, tensor x, int count, bool shifted, struct config c) {
  int size = dim(x, 1), window = size <= c.window_size ? size : c.window_size;
  int step = shifted && size > c.window_size ? window / 2 : 0, more = (window - size % window) % window;
  if (more > 0) x = pad(pad(x, 1, 0, more), 2, 0, more);
  if (step > 0) x = roll(roll(x, 1, -step), 2, -step);
  tensor bias = distances(at(s, "self"), window, count);
  if (step > 0) bias = add(bias, across_regions(dim(x, 0), size + more, window, step));
  x = images(attend(s, windows(x, window), bias, count), window, size + more);
  if (step > 0) x = roll(roll(x, 1, step), 2, step);
  return more > 0 ? slice(slice(x, 1, 0, size), 2, 0, size) : x;
}

static tensor block(scope s, tensor x, int count, bool shifted, double drop, struct config c) {
  tensor h = layer_norm_eps(at(s, "layernorm_before"), x, c.layer_norm_eps);
  h = dropout(attend_windows(at(s, "attention"), h, count, shifted, c), c.hidden_dropout_prob);
  x = add(x, drop_path(h, drop));
  h = layer_norm_eps(at(s, "layernorm_after"), x, c.layer_norm_eps);
  h = gelu(linear(at(s, "intermediate.dense"), h, (int)(c.mlp_ratio * dim(x, 3))));
  return add(x, dropout(linear(at(s, "output.dense"), h, dim(x, 3)), c.hidden_dropout_prob));
}

/* Four patches as one of twice as many columns: [B][S][S][C] to [B][S / 2][S / 2][2 C]. */
static tensor merge(scope s, tensor x) {
  int odd = dim(x, 1) % 2, columns = dim(x, 3);
  if (odd > 0) x = pad(pad(x, 1, 0, 1), 2, 0, 1);
  int half = dim(x, 1) / 2;
  x = reshape(x, dim(x, 0), half, 2, half, 2, columns);
  x = reshape(transpose(transpose(x, 2, 3), 3, 4), dim(x, 0), half, half, 4 * columns);
  return linear_no_bias(at(s, "reduction"), layer_norm(at(s, "norm"), x), 2 * columns);
}

static tensor stage(scope s, tensor x, int number, struct config c) {
  int before = 0, all = 0;
  for (int i = 0; i < c.num_layers; i++) {
    if (i < number) before += c.depths[i];
    all += c.depths[i];
  }
  for (int i = 0; i < c.depths[number]; i++) {
    double drop = all > 1 ? c.drop_path_rate * (before + i) / (all - 1) : 0;
    x = block(nth(s, "blocks", i), x, c.num_heads[number], i % 2 == 1, drop, c);
  }
  return number + 1 < c.num_layers ? merge(at(s, "downsample"), x) : x;
}

/* features [B][channels S S] to logits [B][num_labels]. */
tensor predict(scope s, struct config c, tensor features) {
  s = init_normal(s, c.initializer_range);
  tensor x = reshape(features, dim(features, 0), c.num_channels, c.image_size, c.image_size);
  x = conv2d(at(s, "swin.embeddings.patch_embeddings.projection"), x, c.embed_dim, c.patch_size, c.patch_size, 0);
  x = layer_norm(at(s, "swin.embeddings.norm"), transpose(transpose(x, 1, 2), 2, 3));
  x = dropout(x, c.hidden_dropout_prob);
  for (int i = 0; i < c.num_layers; i++) x = stage(nth(s, "swin.encoder.layers", i), x, i, c);
  x = layer_norm_eps(at(s, "swin.layernorm"), x, c.layer_norm_eps);
  return linear(at(s, "classifier"), mean(mean(x, 2), 1), c.num_labels);
}

tensor model(scope s, struct config c, tensor features, tensor labels) {
  return cross_entropy(predict(s, c, features), labels);
}
