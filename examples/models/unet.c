/* A U-Net that predicts the noise in an image, for diffusion (Ho, Jain, Abbeel, arXiv:2006.11239): the tensor names and
 * the arithmetic of diffusers' UNet2DModel with blocks of convolutions, and of convolutions and attention where
 * `attend` says so. A row of the table is an image, [channels][size][size].
 *
 * B batch, C channels of a block, H and W height and width there. */
#include <accel/model.h>
#include <math.h>

struct config {
  int sample_size, in_channels;
  int blocks; /* how many of the following four are used */
  int block_out_channels[4];
  bool attend[4];
  int layers_per_block, norm_num_groups, attention_head_dim;
  double norm_eps;
  int num_class_embeds; /* classes that the image belongs to; 0: none */
  int num_train_timesteps;
  double beta_start, beta_end;
};

const struct config defaults = {.blocks = 4,
                                .block_out_channels = {224, 448, 672, 896},
                                .attend = {false, true, true, true},
                                .layers_per_block = 2,
                                .norm_num_groups = 32,
                                .attention_head_dim = 8,
                                .norm_eps = 1e-5,
                                .num_class_embeds = 0,
                                .num_train_timesteps = 1000,
                                .beta_start = 1e-4,
                                .beta_end = 0.02};

static tensor norm(scope s, tensor x, struct config c) {
  return group_norm_eps(s, x, c.norm_num_groups, c.norm_eps);
}

/* time [B][4 times the first block's channels] is added between the convolutions. */
static tensor residual(scope s, tensor x, tensor time, int out, struct config c) {
  tensor h = conv2d(at(s, "conv1"), silu(norm(at(s, "norm1"), x, c)), out, 3, 1, 1);
  tensor shift = linear(at(s, "time_emb_proj"), silu(time), out);
  h = add(h, reshape(shift, dim(x, 0), out, 1, 1));
  h = conv2d(at(s, "conv2"), silu(norm(at(s, "norm2"), h, c)), out, 3, 1, 1);
  return add(dim(x, 1) == out ? x : conv2d(at(s, "conv_shortcut"), x, out, 1, 1, 0), h);
}

/* [B][H W][C] as [B][heads][H W][C / heads]. */
static tensor heads(tensor x, struct config c) {
  return transpose(reshape(x, dim(x, 0), dim(x, 1), -1, c.attention_head_dim), 1, 2);
}

/* Every position sees all of the image. */
static tensor attend(scope s, tensor x, struct config c) {
  int batch = dim(x, 0), channels = dim(x, 1);
  tensor h = transpose(reshape(norm(at(s, "group_norm"), x, c), batch, channels, -1), 1, 2);
  tensor q = heads(linear(at(s, "to_q"), h, channels), c);
  tensor k = heads(linear(at(s, "to_k"), h, channels), c);
  tensor v = heads(linear(at(s, "to_v"), h, channels), c);
  h = reshape(transpose(attention(q, k, v, FULL), 1, 2), batch, -1, channels);
  h = transpose(linear(at(s, "to_out.0"), h, channels), 1, 2);
  return add(x, reshape(h, batch, channels, dim(x, 2), dim(x, 3)));
}

static tensor widen(scope s, tensor x) {
  return conv2d(at(s, "conv"), interpolate_nearest(x, 2 * dim(x, 2), 2 * dim(x, 3)), dim(x, 1), 3, 1, 1);
}

/* Steps [B] as waves of falling frequency, and through two layers. */
static tensor time_of(scope s, tensor steps, struct config c) {
  int width = c.block_out_channels[0], half = width / 2;
  double frequencies[half];
  for (int i = 0; i < half; i++) frequencies[i] = exp(-log(10000.0) * i / half);
  tensor angles = mul(reshape(cast_float(steps), dim(steps, 0), 1), table_of(half, frequencies));
  tensor waves = concat(1, cos_of(angles), sin_of(angles));
  return linear(at(s, "linear_2"), silu(linear(at(s, "linear_1"), waves, 4 * width)), 4 * width);
}

/* The noise that is seen in x [B][in_channels][size][size] at these steps. */
static tensor unet(scope s, tensor x, tensor steps, tensor labels, struct config c) {
  tensor time = time_of(at(s, "time_embedding"), steps, c), kept[16];
  if (c.num_class_embeds > 0)
    time = add(time, embedding(at(s, "class_embedding"), labels, c.num_class_embeds, dim(time, 1)));
  int n = 0;
  x = kept[n++] = conv2d(at(s, "conv_in"), x, c.block_out_channels[0], 3, 1, 1);
  for (int i = 0; i < c.blocks; i++) {
    scope block = nth(s, "down_blocks", i);
    for (int j = 0; j < c.layers_per_block; j++) {
      x = residual(nth(block, "resnets", j), x, time, c.block_out_channels[i], c);
      if (c.attend[i]) x = attend(nth(block, "attentions", j), x, c);
      kept[n++] = x;
    }
    if (i + 1 < c.blocks) x = kept[n++] = conv2d(at(block, "downsamplers.0.conv"), x, dim(x, 1), 3, 2, 1);
  }
  scope middle = at(s, "mid_block");
  x = residual(at(middle, "resnets.0"), x, time, dim(x, 1), c);
  x = attend(at(middle, "attentions.0"), x, c);
  x = residual(at(middle, "resnets.1"), x, time, dim(x, 1), c);
  for (int i = c.blocks - 1; i >= 0; i--) {
    scope block = nth(s, "up_blocks", c.blocks - 1 - i);
    for (int j = 0; j <= c.layers_per_block; j++) {
      x = residual(nth(block, "resnets", j), concat(1, x, kept[--n]), time, c.block_out_channels[i], c);
      if (c.attend[i]) x = attend(nth(block, "attentions", j), x, c);
    }
    if (i > 0) x = widen(at(block, "upsamplers.0"), x);
  }
  return conv2d(at(s, "conv_out"), silu(norm(at(s, "conv_norm_out"), x, c)), c.in_channels, 3, 1, 1);
}

/* What is left of the image and what there is of noise after each step, [steps][2] (eq. 4). */
static tensor shares(struct config c) {
  double table[2 * c.num_train_timesteps], left = 1;
  for (int t = 0; t < c.num_train_timesteps; t++) {
    left *= 1 - (c.beta_start + (c.beta_end - c.beta_start) * t / (c.num_train_timesteps - 1));
    table[2 * t] = sqrt(left);
    table[2 * t + 1] = sqrt(1 - left);
  }
  return reshape(table_of(2 * c.num_train_timesteps, table), c.num_train_timesteps, 2);
}

/* How well the noise is found that images get at random steps (algorithm 1). */
tensor model(scope s, struct config c, tensor features, tensor labels) {
  int batch = dim(features, 0);
  tensor x = reshape(features, batch, c.in_channels, c.sample_size, c.sample_size);
  tensor steps = random_int(c.num_train_timesteps, batch);
  tensor noise = random_normal(batch, c.in_channels, c.sample_size, c.sample_size);
  tensor share = reshape(take(shares(c), steps), batch, 2, 1, 1);
  tensor noisy = add(mul(x, slice(share, 1, 0, 1)), mul(noise, slice(share, 1, 1, 1)));
  return mse_loss(unet(s, noisy, steps, labels, c), noise);
}
