/* The same rate for all steps after 20 steps of warm-up. */
static double learning_rate(int64_t at) {
  return 0.1 * fmin((double)(at + 1) / 20.0, 1.0);
}

/* The norm of the whole gradient. */
static double gradient_norm(void) {
  static double sums[1];
  double total = accel_sum_of_squares(arena->all_gradients, 64, 1.0f, sums);
  return sqrt(total);
}

/* Stochastic gradient descent in PyTorch's arithmetic, in one sweep with the clipping of the
 * gradient. */
static void update(int64_t at, double lr) {
  (void)at;
  const float rate = (float)lr;
  const float *restrict gradients = arena->all_gradients;
  float *restrict weights = arena->all_weights;
#pragma omp parallel for simd
  for (size_t i = 0; i < 64; i++) {
    const float g = gradients[i];
    const float w = weights[i] - rate * g;
    weights[i] = w;
  }
}
