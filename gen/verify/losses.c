/* accel/losses.h. */
#include <math.h>

#include "gen/verify/tape/elements.h"
#include "gen/verify/tape/tape.h"

/* Of each row the number at its target, 0 where the target is ignored. */
static tensor at_targets(tensor x, tensor targets, int ignored) {
  const int64_t columns = columns_of(x), rows = rows_of(x);
  int64_t *places = tape_memory(rows, sizeof *places);
  if (targets->count != rows) tape_refuse("cross_entropy: there are not as many targets as rows");
  for (int64_t r = 0; r < rows; r++) {
    const double target = targets->values[r];
    if (target != ignored && !(target >= 0 && target < (double)columns))
      tape_refuse("cross_entropy: a target is %g of %lld classes", target, (long long)columns);
    places[r] = target == ignored ? -1 : r * columns + (int64_t)target;
  }
  return pick(x, 1, &rows, places);
}

/* 1 / count for each row that counts, 0 for the others. */
static tensor shares(tensor targets, int ignored) {
  double count = 0;
  tensor share = tape_new(1, &targets->count);
  for (int64_t r = 0; r < targets->count; r++) count += targets->values[r] != ignored;
  reading_now->counted = count;
  reading_now->entropies++;
  for (int64_t r = 0; r < targets->count; r++) share->values[r] = targets->values[r] != ignored ? 1 / count : 0;
  return share;
}

tensor cross_entropy_with(tensor logits, tensor targets, int ignored, double smoothing, double coefficient) {
  const int64_t rows = rows_of(logits);
  tensor logarithms = log_softmax(logits), share = shares(targets, ignored);
  tensor losses = scale(at_targets(logarithms, targets, ignored), smoothing - 1);
  if (smoothing != 0) {
    tensor all = reshaped(sum(logarithms, -1), 1, &rows);
    losses = sub(losses, scale(all, smoothing / (double)columns_of(logits)));
  }
  if (coefficient != 0) {
    tensor z = reshaped(log_sum_exp(logits), 1, &rows);
    losses = add(losses, scale(square(z), coefficient));
  }
  return sum_all(mul(losses, share));
}

tensor cross_entropy_ignore(tensor logits, tensor targets, int ignored) {
  return cross_entropy_with(logits, targets, ignored, 0, 0);
}

tensor cross_entropy(tensor logits, tensor targets) {
  return cross_entropy_ignore(logits, targets, -100);
}

tensor cross_entropy_smooth(tensor logits, tensor targets, double smoothing) {
  return cross_entropy_with(logits, targets, -100, smoothing, 0);
}

tensor cross_entropy_z(tensor logits, tensor targets, double coefficient) {
  return cross_entropy_with(logits, targets, -100, 0, coefficient);
}

/* ---- Of values ---- */

/* -log sigmoid(x) = softplus(-x), and -log(1 - sigmoid(x)) = softplus(x). */
tensor binary_cross_entropy_with_logits_weighted(tensor logits, tensor targets, tensor weight) {
  tensor positive = mul(mul(targets, weight), softplus(neg(logits)));
  tensor negative = mul(shift(neg(targets), 1), softplus(logits));
  return mean_all(add(positive, negative));
}

tensor binary_cross_entropy_with_logits(tensor logits, tensor targets) {
  return binary_cross_entropy_with_logits_weighted(logits, targets, constant_of(1, 0));
}

tensor mse_loss(tensor x, tensor target) {
  return mean_all(square(sub(x, target)));
}

tensor l1_loss(tensor x, tensor target) {
  return mean_all(abs_of(sub(x, target)));
}

tensor huber_loss(tensor x, tensor target, double delta) {
  tensor size = abs_of(sub(x, target));
  tensor near = tape_like(size), far = tape_like(size);
  for (int64_t i = 0; i < size->count; i++) {
    near->values[i] = size->values[i] < delta;
    far->values[i] = 1 - near->values[i];
  }
  tensor quadratic = scale(square(size), 0.5), straight = scale(shift(size, -0.5 * delta), delta);
  return mean_all(chosen(near, quadratic, far, straight));
}

tensor smooth_l1_loss(tensor x, tensor target, double beta) {
  return scale(huber_loss(x, target, beta), 1 / beta);
}

/* A target of 0 adds nothing. */
tensor kl_div(tensor x, tensor target) {
  tensor full = tape_like(target), empty = tape_like(target);
  for (int64_t i = 0; i < target->count; i++) {
    full->values[i] = target->values[i] > 0;
    empty->values[i] = 1 - full->values[i];
  }
  tensor terms = mul(target, sub(log_of(target), x));
  return mean_all(chosen(full, terms, empty, scale(mul(target, x), -1)));
}

tensor kl_div_log_target(tensor x, tensor target) {
  return mean_all(mul(exp_of(target), sub(target, x)));
}

tensor contrastive_loss(tensor similarity) {
  return cross_entropy(similarity, arange((int)similarity->dim[0]));
}

tensor clip_loss(tensor similarity) {
  return scale(add(contrastive_loss(similarity), contrastive_loss(transpose(similarity, 0, 1))), 0.5);
}
