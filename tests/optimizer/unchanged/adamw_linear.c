/* A straight line, down to the lowest rate at step 1000. */
static double learning_rate(int64_t at) {
  const double highest = 0.001, lowest = 0.0;
  const double done = fmin((double)at / 1000.0, 1.0);
  const double rate = highest + (lowest - highest) * done;
  return rate;
}

/* The norm of the whole gradient. */
static double gradient_norm(void) {
  static double sums[1];
  double total = accel_sum_of_squares(arena->all_gradients, 64, 1.0f, sums);
  return sqrt(total);
}

/* AdamW (Loshchilov, Hutter, arXiv:1711.05101) in PyTorch's arithmetic, in one sweep with the gradient's clipping. */
static void update(int64_t at, double lr) {
  const double correction_1 = 1.0 - pow(0.9, (double)(at + 1));
  const double correction_2 = 1.0 - pow(0.999, (double)(at + 1));
  const float rate = (float)(lr / correction_1), root = (float)(1.0 / sqrt(correction_2));
  const float *restrict gradients = arena->all_gradients;
  float *restrict weights = arena->all_weights;
  float *restrict moment_1 = arena->moment_1;
  float *restrict moment_2 = arena->moment_2;
#pragma omp parallel for simd
  for (size_t i = 0; i < 64; i++) {
    const float g = gradients[i];
    const float m = 0.9f * moment_1[i] + 0.1f * g;
    const float v = 0.999f * moment_2[i] + 0.001f * (g * g);
    moment_1[i] = m;
    moment_2[i] = v;
    const float w = weights[i] - rate * m / (sqrtf(v) * root + 1e-08f);
    weights[i] = w;
  }
}
