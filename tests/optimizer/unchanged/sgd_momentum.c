/* Half a cosine, down to the lowest rate at step 500. */
static double learning_rate(int64_t at) {
  const double highest = 0.1, lowest = 0.0;
  const double done = fmin((double)at / 500.0, 1.0);
  const double rate = lowest + 0.5 * (highest - lowest) * (1.0 + cos(3.141592653589793 * done));
  return rate;
}

/* The norm of the whole gradient. */
static double gradient_norm(void) {
  static double sums[1];
  double total = accel_sum_of_squares(arena->all_gradients, 64, 1.0f, sums);
  return sqrt(total);
}

/* Stochastic gradient descent with momentum in PyTorch's arithmetic, in one sweep with the clipping of the
 * gradient. */
static void update(int64_t at, double lr, float factor) {
  (void)at;
  const float rate = (float)lr;
  const float *restrict gradients = arena->all_gradients;
  float *restrict weights = arena->all_weights;
  float *restrict moment_1 = arena->moment_1;
#pragma omp parallel for simd
  for (size_t i = 0; i < 64; i++) {
    const float g = gradients[i] * factor;
    const float m = 0.9f * moment_1[i] + g;
    moment_1[i] = m;
    const float w = weights[i] - rate * m;
    weights[i] = w;
  }
}
