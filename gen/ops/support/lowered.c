#include "gen/ops/support/lowered.h"

static struct hlo counted(struct stablehlo *hlo, struct hlo targets) {
  return hlo_compare(hlo, "NE", targets, hlo_number((double)node_int(hlo_node(hlo), "ignore")));
}

static struct hlo sum_all(struct stablehlo *hlo, struct hlo x) {
  struct shape axes = {.rank = x.shape.rank};
  for (int i = 0; i < axes.rank; i++) axes.dim[i] = i;
  return hlo_reduce(hlo, "add", x, axes, false);
}

static struct shape column(struct hlo x) {
  return shape_of(2, shape_count(x.shape), (int64_t)1);
}

static struct hlo as_matrix(struct stablehlo *hlo, struct hlo x) {
  return hlo_reshape(hlo, x, shape_of(2, op_rows(x.shape), op_columns(x.shape)));
}

/* 1 / the number of targets that count. */
static struct hlo inverse_count(struct stablehlo *hlo, struct hlo targets) {
  return hlo_div(hlo, hlo_number(1), sum_all(hlo, hlo_convert(hlo, counted(hlo, targets), HLO_F32)));
}

struct hlo_losses op_lower_cross_entropy(struct stablehlo *hlo, struct hlo logits, struct hlo targets) {
  const double smoothing = node_real(hlo_node(hlo), "smoothing"), z = node_real(hlo_node(hlo), "z");
  const struct hlo x = as_matrix(hlo, logits), lse = hlo_log_sum_exp(hlo, x);
  const struct hlo target = hlo_reshape(hlo, targets, shape_of(1, x.shape.dim[0]));
  const struct hlo is_target =
      hlo_compare(hlo, "EQ", hlo_iota(hlo, x.shape, 1, HLO_I32), hlo_reshape(hlo, target, column(target)));
  const struct hlo chosen = hlo_reduce_rows(hlo, "add", hlo_select(hlo, is_target, x, hlo_number(0)));
  struct hlo loss = hlo_sub(hlo, lse, smoothing > 0 ? hlo_mul(hlo, chosen, hlo_number(1 - smoothing)) : chosen);
  if (smoothing > 0) loss = hlo_sub(hlo, loss, hlo_mul(hlo, hlo_row_mean(hlo, x), hlo_number(smoothing)));
  if (z > 0) loss = hlo_add(hlo, loss, hlo_mul(hlo, hlo_mul(hlo, lse, lse), hlo_number(z)));
  loss = hlo_reshape(hlo, loss, target.shape);
  const struct hlo sum = sum_all(hlo, hlo_select(hlo, counted(hlo, target), loss, hlo_number(0)));
  const struct hlo scale = inverse_count(hlo, target);
  return (struct hlo_losses){.loss = hlo_mul(hlo, sum, scale), .lse = lse, .scale = scale};
}

struct hlo op_lower_cross_entropy_backward(struct stablehlo *hlo, struct hlo d_loss, struct hlo logits, struct hlo lse,
                                           struct hlo scale, struct hlo targets) {
  const double smoothing = node_real(hlo_node(hlo), "smoothing"), z = node_real(hlo_node(hlo), "z");
  const struct hlo x = as_matrix(hlo, logits), target = hlo_reshape(hlo, targets, column(targets));
  const struct hlo lse_of = hlo_reshape(hlo, lse, target.shape);
  const struct hlo factor = hlo_select(hlo, counted(hlo, target),
                                       hlo_broadcast(hlo, hlo_mul(hlo, d_loss, scale), target.shape), hlo_number(0));
  const struct hlo is_target = hlo_compare(hlo, "EQ", hlo_iota(hlo, x.shape, 1, HLO_I32), target);
  struct hlo slope = hlo_unary(hlo, "exponential", hlo_sub(hlo, x, lse_of));
  if (z > 0) slope = hlo_mul(hlo, slope, hlo_add(hlo, hlo_mul(hlo, lse_of, hlo_number(2 * z)), hlo_number(1)));
  if (smoothing > 0) slope = hlo_sub(hlo, slope, hlo_number(smoothing / (double)op_columns(x.shape)));
  slope = hlo_sub(hlo, slope, hlo_select(hlo, is_target, hlo_number(1 - smoothing), hlo_number(0)));
  return hlo_reshape(hlo, hlo_mul(hlo, slope, factor), logits.shape);
}

struct hlo op_lower_number(struct stablehlo *hlo, int input) {
  return hlo_reshape(hlo, hlo_raw_input(hlo, input), (struct shape){0});
}

struct hlo op_lower_cached(struct stablehlo *hlo, struct hlo cache, int at, struct hlo first) {
  return hlo_select(hlo, hlo_compare(hlo, "GT", op_lower_number(hlo, at), hlo_number(0)), cache, first);
}

struct hlo op_lower_newest(struct stablehlo *hlo, struct hlo x, int axis, int valid) {
  if (hlo_node(hlo)->n_inputs <= valid) return hlo_slice(hlo, x, axis, x.shape.dim[axis] - 1, 1);
  return hlo_slice_at(hlo, x, axis, hlo_sub(hlo, op_lower_number(hlo, valid), hlo_number(1)), 1);
}
