/* What several operations share of how they are lowered to StableHLO. */
#ifndef ACCEL_OPS_LOWERED_H
#define ACCEL_OPS_LOWERED_H

#include "gen/ops/support/support.h"
#include "gen/stablehlo/stablehlo.h"

/* cross_entropy (gen/ops/cross_entropy.c) over logits [..., classes] by the node's attributes. `targets` is [rows]. */
struct hlo_losses {
  struct hlo loss, lse, scale;
};
struct hlo_losses op_lower_cross_entropy(struct stablehlo *hlo, struct hlo logits, struct hlo targets);

/* Its gradient, of the shape of the logits. */
struct hlo op_lower_cross_entropy_backward(struct stablehlo *hlo, struct hlo d_loss, struct hlo logits, struct hlo lse,
                                           struct hlo scale, struct hlo targets);

/* An input [1] that says how many, such as `at`, as an int32 of no dimensions. */
struct hlo op_lower_number(struct stablehlo *hlo, int input);

/* Of a kind over positions that follow on at[0] earlier ones: its cache, or `first` where there are none. `at`: which
 * input that is. */
struct hlo op_lower_cached(struct stablehlo *hlo, struct hlo cache, int at, struct hlo first);

/* Of the same, what x has along an axis at the last of `new` positions that is valid, of extent 1. `valid`: which input
 * says how many are; all, where the node has not that many inputs. */
struct hlo op_lower_newest(struct stablehlo *hlo, struct hlo x, int axis, int valid);

#endif
