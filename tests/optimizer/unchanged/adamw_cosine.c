/* Half a cosine after 20 steps of warm-up, down to the lowest rate at step 1000. */
static double learning_rate(int64_t at) {
  const double highest = 0.001, lowest = 0.0001;
  const double warm = fmin((double)(at + 1) / 20.0, 1.0);
  const double done = fmin(fmax((double)(at - 20) / 980.0, 0.0), 1.0);
  const double rate = lowest + 0.5 * (highest - lowest) * (1.0 + cos(3.141592653589793 * done));
  return rate * warm;
}

/* The norm of the whole gradient. */
static double gradient_norm(void) {
  static double sums[1];
  double total = accel_sum_of_squares(arena->all_gradients, 64, 1.0f, sums);
  return sqrt(total);
}

/* AdamW (Loshchilov, Hutter, arXiv:1711.05101) in PyTorch's arithmetic, in one sweep with the gradient's clipping. */
static void update(int64_t at, double lr, float factor) {
  const double correction_1 = 1.0 - pow(0.9, (double)(at + 1));
  const double correction_2 = 1.0 - pow(0.95, (double)(at + 1));
  const float rate = (float)(lr / correction_1), root = (float)(1.0 / sqrt(correction_2));
  const float keep = (float)(1.0 - lr * 0.1);
  const float *restrict gradients = arena->all_gradients;
  float *restrict weights = arena->all_weights;
  float *restrict moment_1 = arena->moment_1;
  float *restrict moment_2 = arena->moment_2;
#pragma omp parallel for simd
  for (size_t i = 0; i < 64; i++) {
    const float g = gradients[i] * factor;
    const float m = 0.9f * moment_1[i] + 0.1f * g;
    const float v = 0.95f * moment_2[i] + 0.05f * (g * g);
    moment_1[i] = m;
    moment_2[i] = v;
    const float w = weights[i] * keep - rate * m / (sqrtf(v) * root + 1e-08f);
    weights[i] = w;
  }
}
