/* DiT, a transformer that predicts the noise in an image or in a latent of vae.c, for diffusion (Peebles, Xie,
 * arXiv:2212.09748): the tensor names and the arithmetic of diffusers' DiTTransformer2DModel, so that its checkpoints
 * load from their diffusion_pytorch_model.safetensors. A row of the table is an image,
 * [in_channels][sample_size][sample_size].
 *
 * B batch, N patches, C channels of a patch (num_attention_heads attention_head_dim), P numbers of a patch. */
#include <accel/model.h>
#include <assert.h>
#include <math.h>

struct config {
  int sample_size, patch_size, in_channels;
  int out_channels; /* twice in_channels: the variances of the steps back, too, between their least and their most */
  int num_attention_heads, attention_head_dim, num_layers;
  int num_embeds_ada_norm; /* classes */
  bool attention_bias, norm_elementwise_affine, approximate_gelu;
  double norm_eps;
  double class_dropout_prob;
  int num_train_timesteps;
  double beta_start, beta_end;
};

const struct config defaults = {.sample_size = 32,
                                .patch_size = 2,
                                .in_channels = 4,
                                .out_channels = 8,
                                .num_attention_heads = 16,
                                .attention_head_dim = 72,
                                .num_layers = 28,
                                .num_embeds_ada_norm = 1000,
                                .attention_bias = true,
                                .norm_elementwise_affine = false,
                                .approximate_gelu = true,
                                .norm_eps = 1e-5,
                                .class_dropout_prob = 0.1,
                                .num_train_timesteps = 1000,
                                .beta_start = 1e-4,
                                .beta_end = 0.02};

/* The second is what the first was called when DiT was published. */
const char *const architectures[] = {"DiTTransformer2DModel", "Transformer2DModel"};

/* What a published config.json says otherwise than by a field's own name. */
const struct published published[] = {
    {"_class_name", .is = "DiTTransformer2DModel Transformer2DModel"},
    {"out_channels", "out_channels", .absent = "in_channels"},
    {"activation_fn", "approximate_gelu", .is = "gelu gelu-approximate", .absent = "gelu-approximate"},
    {"norm_type", .is = "ada_norm_zero"},
    {"attention_type*", .is = "default"}, /* of the older class alone, so that it is not written */
    {"norm_num_groups"},
    {"upcast_attention"},            /* where the rest is in 16 bits */
    {.field = "class_dropout_prob"}, /* of training alone, as the following are */
    {.field = "num_train_timesteps"},
    {.field = "beta_start"},
    {.field = "beta_end"},
};

struct published_inputs published_inputs(struct config c) {
  return (struct published_inputs){{{"features", {c.in_channels * c.sample_size * c.sample_size}}}};
}

#define EPS 1e-6

/* A layer that starts as torch.nn.init.xavier_uniform_ does. */
static inline tensor layer(scope s, tensor x, int out) {
  return linear(init_uniform(s, sqrt(6.0 / (dim(x, -1) + out))), x, out);
}

/* x [B][N][C], whose rows get mean 0 and norm 1. */
static inline tensor norm(tensor x, double eps) {
  tensor away = sub(x, reshape(mean(x, -1), dim(x, 0), dim(x, 1), 1));
  return mul(away, rsqrt_of(shift(reshape(mean(square(away), -1), dim(x, 0), dim(x, 1), 1), eps)));
}

/* x [B][N][C] moved and scaled by parts number `first` and `first` + 1 of by [B][parts C]. */
static inline tensor modulate(tensor x, tensor by, int parts, int first) {
  tensor factor = shift(reshape(split(by, 1, parts, first + 1), dim(x, 0), 1, dim(x, 2)), 1);
  return add(mul(x, factor), reshape(split(by, 1, parts, first), dim(x, 0), 1, dim(x, 2)));
}

static inline tensor gate(tensor x, tensor by, int part) {
  return mul(x, reshape(split(by, 1, 6, part), dim(x, 0), 1, dim(x, 2)));
}

static inline tensor heads(scope s, tensor x, struct config c) {
  int batch = dim(x, 0), patches = dim(x, 1), columns = dim(x, 2);
  tensor y = c.attention_bias ? layer(s, x, columns) : linear_no_bias(init_uniform(s, sqrt(3.0 / columns)), x, columns);
  return transpose(reshape(y, batch, patches, c.num_attention_heads, c.attention_head_dim), 1, 2);
}

static tensor attend(scope s, tensor x, struct config c) {
  tensor y = attention(heads(at(s, "to_q"), x, c), heads(at(s, "to_k"), x, c), heads(at(s, "to_v"), x, c), FULL);
  return layer(at(s, "to_out.0"), reshape(transpose(y, 1, 2), dim(x, 0), dim(x, 1), dim(x, 2)), dim(x, 2));
}

static tensor feed_forward(scope s, tensor x, struct config c) {
  tensor y = layer(at(s, "net.0.proj"), x, 4 * dim(x, 2));
  return layer(at(s, "net.2"), c.approximate_gelu ? gelu_tanh(y) : gelu(y), dim(x, 2));
}

/* Steps [B] as waves of falling frequency, and through two layers; and classes. */
static tensor condition(scope s, tensor steps, tensor classes, struct config c) {
  enum { HALF = 128 };
  int columns = c.num_attention_heads * c.attention_head_dim;
  double frequencies[HALF];
  for (int i = 0; i < HALF; i++) frequencies[i] = exp(-log(10000.0) * i / (HALF - 1));
  tensor angles = mul(reshape(cast_float(steps), dim(steps, 0), 1), table_of(HALF, frequencies));
  tensor waves = concat(1, cos_of(angles), sin_of(angles));
  scope small = init_normal(at(s, "emb"), 0.02), time = at(small, "timestep_embedder");
  tensor of_step = linear(at(time, "linear_2"), silu(linear(at(time, "linear_1"), waves, columns)), columns);
  return add(of_step,
             embedding(at(small, "class_embedder.embedding_table"), classes, c.num_embeds_ada_norm + 1, columns));
}

/* By a condition of its own, which starts without a say (adaLN-Zero). */
static tensor block(scope s, tensor x, tensor steps, tensor classes, struct config c) {
  scope first = at(s, "norm1"), third = init_ones(at(s, "norm3"));
  tensor by = silu(condition(first, steps, classes, c));
  by = linear(init_zeros(at(first, "linear")), by, 6 * dim(x, 2));
  x = add(x, gate(attend(at(s, "attn1"), modulate(norm(x, EPS), by, 6, 0), c), by, 2));
  tensor y = c.norm_elementwise_affine ? layer_norm_eps(third, x, c.norm_eps) : norm(x, c.norm_eps);
  return add(x, gate(feed_forward(at(s, "ff"), modulate(y, by, 6, 3), c), by, 5));
}

/* [B][channels][size][size] as [B][N][P] of patches. */
static inline tensor patches(tensor x, struct config c) {
  int p = c.patch_size, along = c.sample_size / p, channels = dim(x, 1);
  x = transpose(transpose(reshape(x, dim(x, 0), channels, along, p, along, p), 1, 2), 2, 4);
  return reshape(transpose(x, 3, 4), dim(x, 0), along * along, channels * p * p);
}

/* [B][N][p p channels] as [B][channels][size][size]: in a patch, the channels of a pixel are neighbours. */
static inline tensor image(tensor x, int channels, struct config c) {
  int p = c.patch_size, along = c.sample_size / p;
  x = transpose(reshape(x, dim(x, 0), along, along, p, p, channels), 2, 3);
  return reshape(transpose(reshape(x, dim(x, 0), -1, channels), 1, 2), dim(x, 0), channels, c.sample_size,
                 c.sample_size);
}

/* x [B][N][C] with where its patches are: half of the channels have waves of the column, the others of the row. */
static tensor add_places(tensor x, struct config c) {
  int along = c.sample_size / c.patch_size, quarter = dim(x, 2) / 4;
  double places[along], frequencies[quarter];
  for (int i = 0; i < along; i++) places[i] = i;
  for (int i = 0; i < quarter; i++) frequencies[i] = pow(10000, -1.0 * i / quarter);
  tensor angles = mul(reshape(table_of(along, places), along, 1), table_of(quarter, frequencies));
  tensor waves = concat(1, sin_of(angles), cos_of(angles));
  tensor columns = pad(waves, 1, 0, 2 * quarter), rows = reshape(pad(waves, 1, 2 * quarter, 0), along, 1, 4 * quarter);
  x = add(add(reshape(x, dim(x, 0), along, along, 4 * quarter), columns), rows);
  return reshape(x, dim(x, 0), along * along, 4 * quarter);
}

static tensor embed(scope s, tensor x, struct config c) {
  int p = c.patch_size, numbers = c.in_channels * p * p, columns = c.num_attention_heads * c.attention_head_dim;
  scope proj = at(s, "pos_embed.proj");
  tensor weight =
      parameter(init_uniform(proj, sqrt(6.0 / (numbers + columns))), "weight", columns, c.in_channels, p, p);
  x = matmul_transposed(patches(x, c), reshape(weight, columns, numbers));
  return add_places(add(x, parameter(init_zeros(proj), "bias", columns)), c);
}

/* The noise that is seen in x [B][in_channels][size][size] at these steps, of images of these classes; and where there
 * are twice as many channels, where the variance of the step back is. */
static tensor dit(scope s, tensor x, tensor steps, tensor classes, struct config c) {
  x = embed(s, x, c);
  for (int i = 0; i < c.num_layers; i++) x = block(nth(s, "transformer_blocks", i), x, steps, classes, c);
  tensor by = silu(condition(at(nth(s, "transformer_blocks", 0), "norm1"), steps, classes, c));
  by = linear(init_zeros(at(s, "proj_out_1")), by, 2 * dim(x, 2));
  x = linear(init_zeros(at(s, "proj_out_2")), modulate(norm(x, EPS), by, 2, 0),
             c.patch_size * c.patch_size * c.out_channels);
  return image(x, c.out_channels, c);
}

/* ---- The process (Ho, Jain, Abbeel, arXiv:2006.11239) and its bound (Nichol, Dhariwal, arXiv:2102.09672) ---- */

/* By step: what is left of the image and what there is of noise (eq. 4), the logarithms of the least and of the most
 * variance of the step back, and how far its mean is off for a noise that is off by 1 (eq. 11). */
enum { LEFT, NOISE, LEAST, MOST, OFF, COLUMNS };

static tensor schedule(struct config c) {
  double table[COLUMNS * c.num_train_timesteps], left = 1, least = 0;
  for (int t = 0; t < c.num_train_timesteps; t++) {
    double beta = c.beta_start + (c.beta_end - c.beta_start) * t / (c.num_train_timesteps - 1), before = left;
    left *= 1 - beta;
    least = beta * (1 - before) / (1 - left);
    table[COLUMNS * t + LEFT] = sqrt(left);
    table[COLUMNS * t + NOISE] = sqrt(1 - left);
    table[COLUMNS * t + LEAST] = t > 0 ? log(least) : 0;
    table[COLUMNS * t + MOST] = log(beta);
    table[COLUMNS * t + OFF] = beta / sqrt((1 - beta) * (1 - left));
  }
  table[LEAST] = table[COLUMNS + LEAST]; /* the first step back has no variance, and takes the next one's */
  return reshape(table_of(COLUMNS * c.num_train_timesteps, table), c.num_train_timesteps, COLUMNS);
}

static inline tensor column(tensor rows, int which) {
  return reshape(slice(rows, 1, which, 1), dim(rows, 0), 1, 1, 1);
}

/* An approximation of the normal distribution's integral up to x (Page, 1977), by the square root of 2 / pi. */
static inline tensor integral(tensor x) {
  tensor inner = add(x, scale(mul(square(x), x), 0.044715));
  return scale(shift(tanh_of(scale(inner, 0.7978845608028654)), 1), 0.5);
}

static inline tensor log_from(tensor x) {
  return log_of(clamp(x, 1e-12, 2));
}

/* In bits: of an image of 256 shades from -1 to 1, what a normal distribution says of it that is centered `off` it. */
static inline tensor shades(tensor image, tensor off, tensor log_variance) {
  tensor width = exp_of(scale(log_variance, -0.5));
  tensor above = integral(mul(shift(off, 1 / 255.0), width)), below = integral(mul(shift(off, -1 / 255.0), width));
  tensor middle = log_from(sub(above, below)), dark = log_from(above), light = log_from(shift(neg(below), 1));
  tensor bright = where(greater(image, constant(0.999, 1)), light, middle);
  return scale(where(less(image, constant(-0.999, 1)), dark, bright), -1 / log(2));
}

/* In bits: how far the step back is from the one that knows the image. The noise learns by its own loss alone. */
static tensor bound(tensor image, tensor error, tensor variance, tensor rows, tensor steps) {
  tensor least = column(rows, LEAST), share = scale(shift(variance, 1), 0.5);
  tensor log_variance = add(least, mul(share, sub(column(rows, MOST), least)));
  tensor off = mul(detach(error), column(rows, OFF)), more = sub(log_variance, least);
  tensor far = add(exp_of(neg(more)), mul(square(off), exp_of(neg(log_variance))));
  tensor divergence = scale(shift(add(more, far), -1), 0.5 / log(2));
  tensor is_last = reshape(equal(cast_float(steps), constant(0, 1)), dim(image, 0), 1, 1, 1);
  return mean_all(where(is_last, shades(image, off, log_variance), divergence));
}

/* How well the noise is found that images get at random steps (algorithm 1); some images come without their class. */
tensor model(scope s, struct config c, tensor features, tensor labels) {
  assert(c.sample_size % c.patch_size == 0 && c.num_attention_heads * c.attention_head_dim % 4 == 0);
  assert((c.out_channels == c.in_channels || c.out_channels == 2 * c.in_channels) && c.num_train_timesteps > 1);
  int batch = dim(features, 0);
  tensor x = reshape(features, batch, c.in_channels, c.sample_size, c.sample_size);
  tensor steps = random_int(c.num_train_timesteps, batch);
  tensor noise = random_normal(batch, c.in_channels, c.sample_size, c.sample_size);
  tensor classes = labels;
  if (c.class_dropout_prob > 0) {
    tensor without = less(random_uniform(batch), constant(c.class_dropout_prob, 1));
    classes =
        cast_index(where(without, constant(c.num_embeds_ada_norm, 1), cast_float(labels)), c.num_embeds_ada_norm + 1);
  }
  tensor rows = take(schedule(c), steps);
  tensor noisy = add(mul(x, column(rows, LEFT)), mul(noise, column(rows, NOISE)));
  tensor seen = dit(s, noisy, steps, classes, c);
  if (c.out_channels == c.in_channels) return mse_loss(seen, noise);
  tensor error = sub(split(seen, 1, 2, 0), noise);
  return add(mean_all(square(error)), bound(x, error, split(seen, 1, 2, 1), rows, steps));
}
