/* Angles of the rotary position embedding, by the scaling kinds of published checkpoints (their config.json's
 * rope_type): how the frequencies of a model trained on short texts change for long ones. */
#ifndef ROPE_H
#define ROPE_H

#include <accel/model.h>
#include <assert.h>
#include <math.h>

#define TWO_PI 6.283185307179586

enum rope_kind {
  ROPE_DEFAULT, /* theta^(-2 r / dims) (Su et al., arXiv:2104.09864, section 3.2.2) */
  ROPE_LINEAR,  /* divided by factor (Chen et al., arXiv:2306.15595) */
  ROPE_DYNAMIC, /* theta grows with the text beyond original_length */
  ROPE_LLAMA3,  /* long waves divided by factor, short ones kept, between them a mean (Llama 3.1) */
  ROPE_YARN     /* the same with a ramp over r, and all products scaled (Peng et al., arXiv:2309.00071) */
};

struct rope_config {
  enum rope_kind kind;
  double theta, factor;
  double low_freq_factor, high_freq_factor; /* ROPE_LLAMA3 */
  double beta_fast, beta_slow;              /* ROPE_YARN */
  double mscale, mscale_all_dim;            /* ROPE_YARN: of the angles' size; 0: as the paper says */
  int original_length;                      /* positions of the model's first training */
};

/* No scaling, with the usual numbers for each kind; the factor and the original length have none. */
#define ROPE_DEFAULTS(theta_)                                                                                          \
  {.kind = ROPE_DEFAULT,                                                                                               \
   .theta = (theta_),                                                                                                  \
   .factor = 0,                                                                                                        \
   .low_freq_factor = 1,                                                                                               \
   .high_freq_factor = 4,                                                                                              \
   .beta_fast = 32,                                                                                                    \
   .beta_slow = 1,                                                                                                     \
   .mscale = 0,                                                                                                        \
   .mscale_all_dim = 0,                                                                                                \
   .original_length = 0}

/* What a published config.json says of this, in rope_parameters or, before those, in rope_scaling; `theta_` is what it
 * means that there is no theta. The length that a model can take is in its job alone. */
#define ROPE_PUBLISHED(theta_)                                                                                         \
  {"rope_parameters.rope_theta rope_theta rotary_emb_base", "rope.theta", .absent = (theta_)},                         \
      {"rope_parameters.rope_type rope_scaling.rope_type rope_scaling.type rope_scaling", "rope.kind",                 \
       .absent = "default"},                                                                                           \
      {"rope_parameters.factor rope_scaling.factor", "rope.factor"},                                                   \
      {"rope_parameters.low_freq_factor rope_scaling.low_freq_factor", "rope.low_freq_factor"},                        \
      {"rope_parameters.high_freq_factor rope_scaling.high_freq_factor", "rope.high_freq_factor"},                     \
      {"rope_parameters.beta_fast rope_scaling.beta_fast", "rope.beta_fast"},                                          \
      {"rope_parameters.beta_slow rope_scaling.beta_slow", "rope.beta_slow"},                                          \
      {"rope_parameters.original_max_position_embeddings rope_scaling.original_max_position_embeddings",               \
       "rope.original_length"},                                                                                        \
      {"rope_parameters.mscale rope_scaling.mscale", "rope.mscale"},                                                   \
      {"rope_parameters.mscale_all_dim rope_scaling.mscale_all_dim", "rope.mscale_all_dim"},                           \
      {"rope_*.attention_factor", .is = "null"}, {"rope_*.truncate", .is = "true"}, {"max_position_embeddings"}

/* cos and sin, [positions][dims / 2] each. */
struct rope {
  tensor cos, sin;
};

static double rope_clamp(double x, double low, double high) {
  return fmin(fmax(x, low), high);
}

static double rope_llama3(struct rope_config c, double frequency) {
  double wave = TWO_PI / frequency;
  if (wave > c.original_length / c.low_freq_factor) return frequency / c.factor;
  if (wave < c.original_length / c.high_freq_factor) return frequency;
  double share = (c.original_length / wave - c.low_freq_factor) / (c.high_freq_factor - c.low_freq_factor);
  return (1 - share) * frequency / c.factor + share * frequency;
}

/* The r at which a frequency turns `turns` times over the original length. */
static double rope_correction_dim(struct rope_config c, int dims, double turns) {
  return dims * log(c.original_length / (turns * TWO_PI)) / (2 * log(c.theta));
}

static double rope_yarn(struct rope_config c, double frequency, int r, int dims) {
  double low = fmax(floor(rope_correction_dim(c, dims, c.beta_fast)), 0);
  double high = fmin(ceil(rope_correction_dim(c, dims, c.beta_slow)), dims - 1);
  double ramp = rope_clamp((r - low) / (high > low ? high - low : 0.001), 0, 1);
  return frequency / c.factor * ramp + frequency * (1 - ramp);
}

static double rope_frequency(struct rope_config c, int r, int dims, int positions) {
  double theta = c.theta;
  if (c.kind == ROPE_DYNAMIC && positions > c.original_length)
    theta *= pow(c.factor * positions / c.original_length - (c.factor - 1), dims / (dims - 2.0));
  double frequency = pow(theta, -2.0 * r / dims);
  if (c.kind == ROPE_LINEAR) return frequency / c.factor;
  if (c.kind == ROPE_LLAMA3) return rope_llama3(c, frequency);
  if (c.kind == ROPE_YARN) return rope_yarn(c, frequency, r, dims);
  return frequency;
}

/* 0.1 by ln(factor) + 1 (arXiv:2309.00071, section 3.4), with `by` of its own as DeepSeek has it. */
static double rope_mscale(struct rope_config c, double by) {
  return c.factor <= 1 ? 1 : 0.1 * by * log(c.factor) + 1;
}

/* What multiplies cos and sin. */
static double rope_size(struct rope_config c) {
  if (c.kind != ROPE_YARN) return 1;
  if (c.mscale == 0 || c.mscale_all_dim == 0) return rope_mscale(c, 1);
  return rope_mscale(c, c.mscale) / rope_mscale(c, c.mscale_all_dim);
}

/* Angles of `dims` columns of a head: all of them, or those that partial_rotary_factor leaves. */
static inline struct rope rope_angles(struct rope_config c, int positions, int dims) {
  assert(dims >= 2 && dims % 2 == 0 && "partial_rotary_factor leaves pairs of a head's columns");
  assert((c.kind == ROPE_DEFAULT || c.factor > 0) && "rope.kind needs rope.factor");
  assert((c.kind == ROPE_DEFAULT || c.kind == ROPE_LINEAR || c.original_length > 0) &&
         "rope.kind needs rope.original_length");
  double frequencies[dims / 2];
  for (int r = 0; r < dims / 2; r++) frequencies[r] = rope_frequency(c, r, dims, positions);
  tensor position = reshape(cast_float(arange(positions)), positions, 1);
  tensor angles = mul(position, table_of(dims / 2, frequencies));
  double size = rope_size(c);
  return (struct rope){.cos = scale(cos_of(angles), size), .sin = scale(sin_of(angles), size)};
}

#endif
