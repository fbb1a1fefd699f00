/* A variational autoencoder of pictures (Kingma, Welling, arXiv:1312.6114), with which latent diffusion begins (Rombach
 * et al., arXiv:2112.10752): the tensor names and the arithmetic of diffusers' AutoencoderKL, so that its checkpoints
 * load from their diffusion_pytorch_model.safetensors. It has no labels: the job's data.inputs names `picture`,
 * [channels][height][width], alone.
 *
 * B batch, C channels of a block, H and W height and width there, L latent_channels. */
#include <accel/model.h>
#include <math.h>

enum { MOST_BLOCKS = 8 };

struct config {
  int in_channels, latent_channels;
  int sample_size; /* height and width of pictures; the data may have others */
  int blocks;      /* how many of the following are used; each but the last one halves height and width */
  int block_out_channels[MOST_BLOCKS];
  int layers_per_block, norm_num_groups;
  bool use_quant_conv, use_post_quant_conv, mid_block_add_attention;
  double kl_weight; /* of the divergence; 1: the bound of the paper, with a decoder of unit variance */
};

const struct config defaults = {.in_channels = 3,
                                .latent_channels = 4,
                                .sample_size = 32,
                                .blocks = 4,
                                .block_out_channels = {128, 256, 512, 512},
                                .layers_per_block = 2,
                                .norm_num_groups = 32,
                                .use_quant_conv = true,
                                .use_post_quant_conv = true,
                                .mid_block_add_attention = true,
                                .kl_weight = 1};

const char *const architectures[] = {"AutoencoderKL"};

/* What a published config.json says otherwise than by a field's own name. */
const struct published published[] = {
    {"_class_name", .is = "AutoencoderKL"},
    {"out_channels", .is = "in_channels", .absent = "3"}, /* what comes back is compared with what went in */
    {"block_out_channels.#", "blocks", .absent = "1"},
    {"block_out_channels.0", "block_out_channels.0", .absent = "64"},
    {"down_block_types.#", .is = "blocks", .absent = "1"},
    {"down_block_types.*", .is = "DownEncoderBlock2D"},
    {"up_block_types.#", .is = "blocks", .absent = "1"},
    {"up_block_types.*", .is = "UpDecoderBlock2D"},
    {"layers_per_block", "layers_per_block", .absent = "1"},
    {"act_fn", .is = "silu swish"},
    {"scaling_factor"}, /* of latents, for the model that learns their noise */
    {"shift_factor"},
    {"latents_mean*"},
    {"latents_std*"},
    {"force_upcast"},
    {.field = "kl_weight"}, /* of training alone */
};

struct published_inputs published_inputs(struct config c) {
  return (struct published_inputs){{{"picture", {c.in_channels, c.sample_size, c.sample_size}}}};
}

static tensor norm(scope s, tensor x, struct config c) {
  return group_norm_eps(s, x, c.norm_num_groups, 1e-6);
}

static tensor residual(scope s, tensor x, int out, struct config c) {
  tensor h = conv2d(at(s, "conv1"), silu(norm(at(s, "norm1"), x, c)), out, 3, 1, 1);
  h = conv2d(at(s, "conv2"), silu(norm(at(s, "norm2"), h, c)), out, 3, 1, 1);
  return add(dim(x, 1) == out ? x : conv2d(at(s, "conv_shortcut"), x, out, 1, 1, 0), h);
}

/* Every position sees all of the picture, by one head. */
static tensor attend(scope s, tensor x, struct config c) {
  int batch = dim(x, 0), channels = dim(x, 1);
  tensor h = transpose(reshape(norm(at(s, "group_norm"), x, c), batch, channels, -1), 1, 2);
  tensor q = reshape(linear(at(s, "to_q"), h, channels), batch, 1, -1, channels);
  tensor k = reshape(linear(at(s, "to_k"), h, channels), batch, 1, -1, channels);
  tensor v = reshape(linear(at(s, "to_v"), h, channels), batch, 1, -1, channels);
  h = linear(at(s, "to_out.0"), reshape(attention(q, k, v, FULL), batch, -1, channels), channels);
  return add(x, reshape(transpose(h, 1, 2), batch, channels, dim(x, 2), dim(x, 3)));
}

static tensor middle(scope s, tensor x, struct config c) {
  x = residual(at(s, "resnets.0"), x, dim(x, 1), c);
  if (c.mid_block_add_attention) x = attend(at(s, "attentions.0"), x, c);
  return residual(at(s, "resnets.1"), x, dim(x, 1), c);
}

/* Half as high and wide; beyond the lower and the right edge there are zeros. */
static tensor narrow(scope s, tensor x) {
  return conv2d(at(s, "conv"), pad(pad(x, 2, 0, 1), 3, 0, 1), dim(x, 1), 3, 2, 0);
}

static tensor widen(scope s, tensor x) {
  return conv2d(at(s, "conv"), interpolate_nearest(x, 2 * dim(x, 2), 2 * dim(x, 3)), dim(x, 1), 3, 1, 1);
}

static tensor finish(scope s, tensor x, int out, struct config c) {
  return conv2d(at(s, "conv_out"), silu(norm(at(s, "conv_norm_out"), x, c)), out, 3, 1, 1);
}

/* [B][in_channels][height][width] to the latent's mean and the logarithm of its variance, [B][2 L][H][W]. */
static tensor encode(scope s, tensor picture, struct config c) {
  scope encoder = at(s, "encoder");
  tensor x = conv2d(at(encoder, "conv_in"), picture, c.block_out_channels[0], 3, 1, 1);
  for (int i = 0; i < c.blocks; i++) {
    scope block = nth(encoder, "down_blocks", i);
    for (int j = 0; j < c.layers_per_block; j++) x = residual(nth(block, "resnets", j), x, c.block_out_channels[i], c);
    if (i + 1 < c.blocks) x = narrow(at(block, "downsamplers.0"), x);
  }
  x = finish(encoder, middle(at(encoder, "mid_block"), x, c), 2 * c.latent_channels, c);
  return c.use_quant_conv ? conv2d(at(s, "quant_conv"), x, 2 * c.latent_channels, 1, 1, 0) : x;
}

/* A latent [B][L][H][W] to the picture. */
static tensor decode(scope s, tensor latent, struct config c) {
  scope decoder = at(s, "decoder");
  tensor x = c.use_post_quant_conv ? conv2d(at(s, "post_quant_conv"), latent, c.latent_channels, 1, 1, 0) : latent;
  x = conv2d(at(decoder, "conv_in"), x, c.block_out_channels[c.blocks - 1], 3, 1, 1);
  x = middle(at(decoder, "mid_block"), x, c);
  for (int i = c.blocks - 1; i >= 0; i--) {
    scope block = nth(decoder, "up_blocks", c.blocks - 1 - i);
    for (int j = 0; j <= c.layers_per_block; j++) x = residual(nth(block, "resnets", j), x, c.block_out_channels[i], c);
    if (i > 0) x = widen(at(block, "upsamplers.0"), x);
  }
  return finish(decoder, x, c.in_channels, c);
}

/* The bound on a picture's likelihood (eq. 10), without its constant and for a number of the picture: the squared error
 * of what comes back from a latent that is drawn, and the divergence from a normal distribution. */
tensor model(scope s, struct config c, tensor picture) {
  tensor moments = encode(s, picture, c);
  tensor mean = split(moments, 1, 2, 0), log_variance = clamp(split(moments, 1, 2, 1), -30, 20);
  tensor noise = random_normal(dim(mean, 0), dim(mean, 1), dim(mean, 2), dim(mean, 3));
  tensor error = mse_loss(decode(s, add(mean, mul(exp_of(scale(log_variance, 0.5)), noise)), c), picture);
  tensor divergence = sub(add(square(mean), exp_of(log_variance)), shift(log_variance, 1));
  double numbers = (double)dim(picture, 0) * dim(picture, 1) * dim(picture, 2) * dim(picture, 3);
  return scale(add(error, scale(sum_all(divergence), c.kl_weight / numbers)), 0.5);
}
