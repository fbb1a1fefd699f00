/* DiT, a transformer that predicts the noise in an image or in a latent of vae.c, for diffusion (Peebles, Xie,
 * arXiv:2212.09748): the tensor names and the arithmetic of the class DiT that was published with the paper. A row of
 * the table is an image, [in_channels][input_size][input_size].
 *
 * B batch, N patches, C hidden_size, H num_heads, P numbers of a patch. */
#include <accel/model.h>
#include <assert.h>
#include <math.h>

struct config {
  int input_size, patch_size, in_channels, hidden_size, depth, num_heads, num_classes;
  double mlp_ratio, class_dropout_prob;
  bool learn_sigma; /* the variances of the steps back, too, between their least and their most */
  int num_train_timesteps;
  double beta_start, beta_end;
};

const struct config defaults = {.input_size = 32,
                                .patch_size = 2,
                                .in_channels = 4,
                                .hidden_size = 1152,
                                .depth = 28,
                                .num_heads = 16,
                                .num_classes = 1000,
                                .mlp_ratio = 4,
                                .class_dropout_prob = 0.1,
                                .learn_sigma = true,
                                .num_train_timesteps = 1000,
                                .beta_start = 1e-4,
                                .beta_end = 0.02};

/* A layer that starts as torch.nn.init.xavier_uniform_ does. */
static inline tensor layer(scope s, tensor x, int out) {
  return linear(init_uniform(s, sqrt(6.0 / (dim(x, -1) + out))), x, out);
}

/* x [B][N][C], whose rows get norm 1, moved and scaled by parts number `first` and `first` + 1 of by [B][parts C]. */
static inline tensor modulate(tensor x, tensor by, int parts, int first) {
  int batch = dim(x, 0), columns = dim(x, 2);
  tensor mean_of = reshape(mean(x, -1), batch, dim(x, 1), 1), away = sub(x, mean_of);
  tensor size = reshape(mean(square(away), -1), batch, dim(x, 1), 1);
  tensor factor = shift(reshape(split(by, 1, parts, first + 1), batch, 1, columns), 1);
  tensor offset = reshape(split(by, 1, parts, first), batch, 1, columns);
  return add(mul(mul(away, rsqrt_of(shift(size, 1e-6))), factor), offset);
}

static inline tensor gate(tensor x, tensor by, int part) {
  return mul(x, reshape(split(by, 1, 6, part), dim(x, 0), 1, dim(x, 2)));
}

static inline tensor heads(tensor qkv, int which, struct config c) {
  tensor x = split(qkv, 2, 3, which);
  return transpose(reshape(x, dim(x, 0), dim(x, 1), c.num_heads, c.hidden_size / c.num_heads), 1, 2);
}

/* By a condition [B][C], which starts without a say (adaLN-Zero). */
static tensor block(scope s, tensor x, tensor condition, struct config c) {
  tensor by = linear(init_zeros(at(s, "adaLN_modulation.1")), silu(condition), 6 * c.hidden_size);
  tensor qkv = layer(at(s, "attn.qkv"), modulate(x, by, 6, 0), 3 * c.hidden_size);
  tensor y = transpose(attention(heads(qkv, 0, c), heads(qkv, 1, c), heads(qkv, 2, c), FULL), 1, 2);
  y = layer(at(s, "attn.proj"), reshape(y, dim(x, 0), dim(x, 1), c.hidden_size), c.hidden_size);
  x = add(x, gate(y, by, 2));
  y = gelu_tanh(layer(at(s, "mlp.fc1"), modulate(x, by, 6, 3), (int)(c.hidden_size * c.mlp_ratio)));
  return add(x, gate(layer(at(s, "mlp.fc2"), y, c.hidden_size), by, 5));
}

/* Steps [B] as waves of falling frequency, and through two layers. */
static tensor time_of(scope s, tensor steps, struct config c) {
  enum { HALF = 128 };
  double frequencies[HALF];
  for (int i = 0; i < HALF; i++) frequencies[i] = exp(-log(10000.0) * i / HALF);
  tensor angles = mul(reshape(cast_float(steps), dim(steps, 0), 1), table_of(HALF, frequencies));
  tensor waves = concat(1, cos_of(angles), sin_of(angles));
  return linear(at(s, "mlp.2"), silu(linear(at(s, "mlp.0"), waves, c.hidden_size)), c.hidden_size);
}

/* [B][channels][size][size] as [B][N][P] of patches. */
static inline tensor patches(tensor x, struct config c) {
  int p = c.patch_size, along = c.input_size / p, channels = dim(x, 1);
  x = transpose(transpose(reshape(x, dim(x, 0), channels, along, p, along, p), 1, 2), 2, 4);
  return reshape(transpose(x, 3, 4), dim(x, 0), along * along, channels * p * p);
}

/* [B][N][p p channels] as [B][channels][size][size]: in a patch, the channels of a pixel are neighbours. */
static inline tensor image(tensor x, int channels, struct config c) {
  int p = c.patch_size, along = c.input_size / p;
  x = transpose(reshape(x, dim(x, 0), along, along, p, p, channels), 2, 3);
  return reshape(transpose(reshape(x, dim(x, 0), -1, channels), 1, 2), dim(x, 0), channels, c.input_size, c.input_size);
}

/* The noise that is seen in x [B][in_channels][size][size] at these steps, of images of these classes; and with
 * learn_sigma, in as many channels more, where the variance of the step back is. */
static tensor dit(scope s, tensor x, tensor steps, tensor classes, struct config c) {
  int p = c.patch_size, numbers = c.in_channels * p * p, out = c.in_channels * (c.learn_sigma ? 2 : 1);
  scope embedder = at(s, "x_embedder.proj");
  scope grid = init_sinusoid_grid(s, pow(10000, 4.0 / c.hidden_size), c.input_size / p);
  tensor weight = parameter(init_uniform(embedder, sqrt(6.0 / (numbers + c.hidden_size))), "weight", c.hidden_size,
                            c.in_channels, p, p);
  x = matmul_transposed(patches(x, c), reshape(weight, c.hidden_size, numbers));
  x = add(add(x, parameter(init_zeros(embedder), "bias", c.hidden_size)),
          buffer(grid, "pos_embed", 1, dim(x, 1), c.hidden_size));
  scope small = init_normal(s, 0.02);
  int rows = c.num_classes + (c.class_dropout_prob > 0 ? 1 : 0);
  tensor condition = add(time_of(at(small, "t_embedder"), steps, c),
                         embedding(at(small, "y_embedder.embedding_table"), classes, rows, c.hidden_size));
  for (int i = 0; i < c.depth; i++) x = block(nth(s, "blocks", i), x, condition, c);
  scope last = init_zeros(at(s, "final_layer"));
  tensor by = linear(at(last, "adaLN_modulation.1"), silu(condition), 2 * c.hidden_size);
  return image(linear(at(last, "linear"), modulate(x, by, 2, 0), p * p * out), out, c);
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
  assert(c.input_size % c.patch_size == 0 && c.hidden_size % c.num_heads == 0 && c.num_train_timesteps > 1);
  int batch = dim(features, 0);
  tensor x = reshape(features, batch, c.in_channels, c.input_size, c.input_size);
  tensor steps = random_int(c.num_train_timesteps, batch);
  tensor noise = random_normal(batch, c.in_channels, c.input_size, c.input_size);
  tensor classes = labels;
  if (c.class_dropout_prob > 0) {
    tensor without = less(random_uniform(batch), constant(c.class_dropout_prob, 1));
    classes = cast_index(where(without, constant(c.num_classes, 1), cast_float(labels)), c.num_classes + 1);
  }
  tensor rows = take(schedule(c), steps);
  tensor noisy = add(mul(x, column(rows, LEFT)), mul(noise, column(rows, NOISE)));
  tensor seen = dit(s, noisy, steps, classes, c);
  if (!c.learn_sigma) return mse_loss(seen, noise);
  tensor error = sub(split(seen, 1, 2, 0), noise);
  return add(mean_all(square(error)), bound(x, error, split(seen, 1, 2, 1), rows, steps));
}
