/* accel/losses.h: losses, a part of accel/model.h.
 *
 * They are scalars: means over all positions, as PyTorch's with reduction="mean". */
#ifndef ACCEL_LOSSES_H
#define ACCEL_LOSSES_H

#include <accel/model.h>

/* The mean over all positions of -log softmax(logits)[target]: logits [...][classes], targets int32 [...]; a scalar.
 * Positions whose target is -100 are left out, as in PyTorch. */
tensor cross_entropy(tensor logits, tensor targets);

/* With `ignored` instead of -100. */
tensor cross_entropy_ignore(tensor logits, tensor targets, int ignored);

/* With label smoothing: that fraction of each target's weight is spread evenly over all classes (Szegedy et al.,
 * arXiv:1512.00567, section 7). */
tensor cross_entropy_smooth(tensor logits, tensor targets, double smoothing);

/* With coefficient * log_sum_exp(logits)^2 added to each position's loss (the z-loss of PaLM, arXiv:2204.02311). */
tensor cross_entropy_z(tensor logits, tensor targets, double coefficient);

/* With all of these. */
tensor cross_entropy_with(tensor logits, tensor targets, int ignored, double smoothing, double coefficient);

/* The mean of -(target log sigmoid(x) + (1 - target) log(1 - sigmoid(x))) over logits x and targets of one shape, the
 * targets within 0 and 1. */
tensor binary_cross_entropy_with_logits(tensor logits, tensor targets);

/* With `weight`, which broadcasts to the targets: it multiplies what positive ones add (PyTorch's pos_weight). */
tensor binary_cross_entropy_with_logits_weighted(tensor logits, tensor targets, tensor weight);

/* The mean of d^2, with d = x - target, both of one shape, here and in the three that follow. */
tensor mse_loss(tensor x, tensor target);

/* The mean of |d|. */
tensor l1_loss(tensor x, tensor target);

/* The mean of d^2 / 2 where |d| < delta, of delta (|d| - delta / 2) elsewhere; delta is above 0. */
tensor huber_loss(tensor x, tensor target, double delta);

/* The Huber loss with delta = beta, divided by beta. */
tensor smooth_l1_loss(tensor x, tensor target, double beta);

/* Of logarithms of probabilities and of probabilities: the mean over all positions of target (log target - x). Times
 * the last extent it is the Kullback-Leibler divergence for each distribution (PyTorch's reduction="batchmean"). */
tensor kl_div(tensor x, tensor target);

/* The same where the targets are logarithms, too: the mean of exp(target) (target - x). */
tensor kl_div_log_target(tensor x, tensor target);

/* Of similarities [n][n] where row i belongs to column i, and all other columns are its negatives: cross-entropy over
 * the rows (InfoNCE, arXiv:1807.03748). Similarities are scale(matmul_transposed(normalize(a), normalize(b)), 1 /
 * temperature). */
tensor contrastive_loss(tensor similarity);

/* The mean of that over rows and of that over columns (CLIP, arXiv:2103.00020). */
tensor clip_loss(tensor similarity);

/* max(|anchor - positive| - |anchor - negative| + margin, 0) for each row (arXiv:1503.03832). */
tensor triplet_margin_loss(tensor anchor, tensor positive, tensor negative, double margin);

#endif
