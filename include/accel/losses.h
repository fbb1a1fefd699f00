/* accel/losses.h: losses, a part of accel/model.h.
 *
 * They are scalars: means over all places, as PyTorch's with reduction="mean". */
#ifndef ACCEL_LOSSES_H
#define ACCEL_LOSSES_H

#include <accel/model.h>

/* The mean over all places of -log softmax(logits)[target]: logits [...][classes], targets int32 [...]; a scalar.
 * Places whose target is `ignored` are left out; where none is named, -100 is, as in PyTorch. */
tensor cross_entropy(tensor logits, tensor targets);
tensor cross_entropy_ignore(tensor logits, tensor targets, int ignored);

/* With label smoothing: that share of each target's weight lies on all classes alike (Szegedy et al., arXiv:1512.00567,
 * section 7). */
tensor cross_entropy_smooth(tensor logits, tensor targets, double smoothing);

/* With coefficient * log_sum_exp(logits)^2 added to each place's loss (the z-loss of PaLM, arXiv:2204.02311). */
tensor cross_entropy_z(tensor logits, tensor targets, double coefficient);

/* With all of these. */
tensor cross_entropy_with(tensor logits, tensor targets, int ignored, double smoothing, double coefficient);

/* Of logits and targets of one shape, the targets within 0 and 1; `weight` multiplies what positive targets add and
 * broadcasts to them (PyTorch's pos_weight). */
tensor binary_cross_entropy_with_logits(tensor logits, tensor targets);
tensor binary_cross_entropy_with_logits_weighted(tensor logits, tensor targets, tensor weight);

/* Of numbers, with d = x - target, of one shape: d^2; |d|; d^2 / 2 where |d| < delta, delta (|d| - delta / 2)
 * elsewhere; and that divided by its delta. */
tensor mse_loss(tensor x, tensor target);
tensor l1_loss(tensor x, tensor target);
tensor huber_loss(tensor x, tensor target, double delta);
tensor smooth_l1_loss(tensor x, tensor target, double beta);

/* Of logarithms of probabilities beside probabilities: the mean over all places of target (log target - x), or where
 * the targets are logarithms too, exp(target) (target - x). Times the last extent it is the Kullback-Leibler divergence
 * for each distribution (PyTorch's reduction="batchmean"). */
tensor kl_div(tensor x, tensor target);
tensor kl_div_log_target(tensor x, tensor target);

/* Of similarities [n][n] where row i belongs to column i, and all other columns are its negatives: cross-entropy over
 * the rows (InfoNCE, arXiv:1807.03748), and the mean of that over rows and over columns (CLIP, arXiv:2103.00020).
 * Similarities are scale(matmul_transposed(normalize(a), normalize(b)), 1 / temperature). */
tensor contrastive_loss(tensor similarity);
tensor clip_loss(tensor similarity);

/* max(|anchor - positive| - |anchor - negative| + margin, 0) for each row (arXiv:1503.03832). */
tensor triplet_margin_loss(tensor anchor, tensor positive, tensor negative, double margin);

#endif
