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

#endif
