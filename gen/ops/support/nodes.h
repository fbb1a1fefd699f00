/* Nodes of the kinds that others build with: gradients, functions of accel/model.h that are several operations, and
 * passes of the plan. Each is what builder_op gives: NULL after an error, and of a NULL. */
#ifndef ACCEL_OPS_NODES_H
#define ACCEL_OPS_NODES_H

#include "gen/ir/builder.h"

/* The kinds of the steps that the plan makes of itself: y = x in memory of its own, and the update of a parameter by
 * the optimizer's rule. */
extern const struct op_kind op_copy, op_step_tensor;

/* The kinds of matmuls by a weight of codes of 4 bits, and of 8: their inputs and attributes are in their file. */
extern const struct op_kind op_quantized_matmul, op_int8_matmul, op_gguf_matmul;

/* The kinds of tensors rounded to 8 bits and of products of these: their inputs and attributes are in their file. */
extern const struct op_kind op_fp8_quantize, op_fp8_quantize_delayed, op_fp8_matmul, op_fp8_matmul_delayed;
extern const struct op_kind op_fp8_group_matmul;

/* The kind of a matmul with these epilogues, as bits; NULL where there is none. After a and b its inputs are the bias
 * and the saved values, after y its outputs are saved values and sums, as far as it has them. Of relu a bit an element
 * is saved, in rows of int32; of gelu its operand. */
const struct op_kind *op_matmul_with(unsigned epilogues);

/* ---- Elementwise ---- */

/* a + b, a - b, a b, a / b, broadcast; 1 where a > b, else 0. */
struct value *op_add(struct builder *builder, struct value *a, struct value *b);
struct value *op_sub(struct builder *builder, struct value *a, struct value *b);
struct value *op_mul(struct builder *builder, struct value *a, struct value *b);
struct value *op_div(struct builder *builder, struct value *a, struct value *b);
struct value *op_greater(struct builder *builder, struct value *a, struct value *b);
/* x in memory of its own, -x, x^2. */
struct value *op_neg(struct builder *builder, struct value *x);
struct value *op_copied(struct builder *builder, struct value *x);
struct value *op_square(struct builder *builder, struct value *x);
/* x * value, x + value, x clamped to [low, high]. */
struct value *op_scale(struct builder *builder, struct value *x, double value);
struct value *op_shift(struct builder *builder, struct value *x, double value);
struct value *op_clamp(struct builder *builder, struct value *x, double low, double high);
/* `value` in every position of the shape. */
struct value *op_constant(struct builder *builder, double value, struct shape shape);
/* x over a larger shape. */
struct value *op_broadcast(struct builder *builder, struct value *x, struct shape shape);

/* ---- Views ---- */

/* x with these extents; x itself when they are its own. */
struct value *op_reshape(struct builder *builder, struct value *x, struct shape shape);
/* x with dimensions a and b swapped; with the last two. */
struct value *op_transpose(struct builder *builder, struct value *x, int a, int b);
struct value *op_matrix_transpose(struct builder *builder, struct value *x);
/* The positions [start, start + count) of x along an axis. */
struct value *op_slice(struct builder *builder, struct value *x, int axis, int64_t start, int64_t count);

/* ---- Others ---- */

/* x with so many zeros before and after it along an axis. */
struct value *op_pad(struct builder *builder, struct value *x, int axis, int64_t before, int64_t after);
/* The sum of x over the dimensions `axes`, which is a reshape where they have one element each; the mean of all of x.
 */
struct value *op_sum(struct builder *builder, struct value *x, struct shape axes);
struct value *op_mean_all(struct builder *builder, struct value *x);
/* x summed over the dimensions that broadcasting added or widened, so that it has `shape`: the gradient of a
 * broadcast operand. x itself when the shapes are equal. */
struct value *op_unbroadcast(struct builder *builder, struct value *x, struct shape shape);
/* The matmul of a and b over their last two dimensions. */
struct value *op_matmul(struct builder *builder, struct value *a, struct value *b);
/* x at an int32 index along an axis, of x's shape but there. */
struct value *op_gather(struct builder *builder, struct value *x, int axis, struct value *index);
/* x with elements dropped at probability p; `site` distinguishes its draws from the others' in its region. */
struct value *op_dropout(struct builder *builder, struct value *x, double p, int64_t site);
/* The positions [at[0], at[0] + count) of x along an axis; `at` is int32. */
struct value *op_dynamic_slice(struct builder *builder, struct value *x, struct value *at, int axis, int64_t count);
/* x, of float32, assigned to the buffer `kept` of its shape. */
struct value *op_keep(struct builder *builder, struct value *x, struct value *kept);
/* 0, 1, …, count - 1 as int32. */
struct value *op_arange(struct builder *builder, int64_t count);
/* The class that each row of logits speaks for, as int32. */
struct value *op_predict_class(struct builder *builder, struct value *logits);

/* The index of each row within the `rows` that a rank along `axis` has of `whole`, or -1 where it is another rank's or
 * `ignored` (gen/ops/own_index.c). */
struct value *op_own_index(struct builder *builder, struct value *index, int64_t rows, int64_t whole, int64_t axis,
                           int64_t ignored);
/* How many of its `rows` are of the whole, [1] of int32: on the last rank they may be fewer. */
struct value *op_own_extent(struct builder *builder, int64_t rows, int64_t whole, int64_t axis);

/* The result of `kind`, all_reduce or replicate, of x over the ranks along an axis: the sum of what they have, or x
 * itself, whose gradient is such a sum. */
struct value *op_exchange_whole(struct builder *builder, const char *kind, struct value *x, int64_t axis);

/* A tensor of which ranks along an axis of the mesh have parts (gen/ops/all_gather.c). */
struct op_parts {
  int64_t axis, ranks;
  int dim;
  int64_t blocks; /* of that dimension, of each of which a rank has a part */
  bool partial;   /* what ranks do with the result are parts of a sum */
  bool balanced;  /* of 2 ranks chunks, rank r has the one at r and the one at r from the end */
  bool remade;    /* the backward makes it again where it needs it */
};

/* The result of `kind`, all_gather, reduce_scatter or part_of, of x. */
struct value *op_exchange_parts(struct builder *builder, const char *kind, struct value *x, struct op_parts parts);

/* The whole of x, of whose dimension `dim` each of the ranks along an axis has balanced parts of a sequence, in its
 * order. */
struct value *op_gather_chunks(struct builder *builder, struct value *x, int dim, int64_t axis, int64_t ranks);

/* x, of which ranks along an axis have parts of dimension `gathered`, with parts of dimension `split` instead.
 */
struct value *op_all_to_all(struct builder *builder, struct value *x, int64_t axis, int64_t ranks, int split,
                            int gathered);

/* How a tensor is rounded to 8 bits (gen/ops/fp8.c). */
struct op_fp8 {
  bool bf16;      /* the rounded numbers are bfloat16, else float32 */
  bool e5m2;      /* to E5M2, else to E4M3 */
  bool powers;    /* scales are powers of two: of a scale that is given and not above 0, of the tensor at hand */
  bool evaluates; /* by a scale that is given: where the model is evaluated, too */
};

/* x rounded: the node, whose outputs are the numbers, 1 / the scale, and the buffer `history` with the largest size of
 * x at its start. NULL for both buffers: the scale is of x itself. */
struct node *op_fp8_quantize_with(struct builder *builder, struct value *x, struct value *scale, struct value *history,
                                  struct op_fp8 how);

/* a b a_inverse b_inverse, [..., M, K] by [K, N], of rounded tensors and 1 / their scales. `how` rounds the gradient of
 * the product, by the buffers grad_scale and grad_history, or NULL for both. wide_a: a before it was rounded, of which
 * the gradient of b then is, with the gradient of the product as it is; NULL: of both rounded. */
struct value *op_fp8_product(struct builder *builder, struct value *const factors[4], struct value *grad_scale,
                             struct value *grad_history, struct value *wide_a, struct op_fp8 how);

/* Which factor of a product is in E5M2; the others are in E4M3. */
enum op_fp8_pair { FP8_PAIR_E4M3, FP8_PAIR_E5M2_FIRST, FP8_PAIR_E5M2_SECOND };

/* a b^T a_inverse b_inverse, [..., M, K] by [N, K], of codes of 8 bits; the result is bfloat16, else float32. factors:
 * a, b, a_inverse, b_inverse (gen/ops/fp8_multiply.c). */
struct value *op_fp8_multiply_with(struct builder *builder, struct value *const factors[4], enum op_fp8_pair pair,
                                   bool bf16);

/* A copy of a matrix of codes, [columns][rows]. */
struct value *op_fp8_transpose_of(struct builder *builder, struct value *x);

/* The operations of a product of two matrices, of which b is the second input. */
double op_fp8_flops(const struct node *node);

/* op_ranks.place of a product with scales of the factors at hand: a rank may have rows of the first one, and scales of
 * what it has. */
bool op_fp8_place_rows(const struct node *node, int seed, int64_t ranks, struct placement *placements);

/* The nearest number of E4M3, or of E5M2, ties to even; saturated. */
double op_round_fp8(double x, bool e5m2);

/* How a group of numbers that share a scale in 8 bits has it, of their largest size (gen/ops/fp8_groups.c). */
enum op_fp8_scaling {
  FP8_SCALE_ROW,    /* the largest power of two that keeps it within E4M3 as a factor */
  FP8_SCALE_FLOOR,  /* its own largest power of two over that of E4M3; e8m0 */
  FP8_SCALE_CEILING /* the least power of two that keeps it within E4M3 as a divisor; e8m0 */
};

/* How a product rounds its factors by groups. */
struct op_fp8_groups {
  bool bf16;                 /* the rounded numbers are bfloat16, else float32 */
  bool wide_weight_gradient; /* the gradient of b is of factors that are not rounded, and that of a of b with one scale
                              */
  int64_t block;             /* numbers of a group; 0: a row's */
  enum op_fp8_scaling scaling;
};

/* a b, [..., M, K] by [K, N], both rounded along K; the gradients round theirs along what they add up over. */
struct value *op_fp8_group_matmul_with(struct builder *builder, struct value *a, struct value *b,
                                       struct op_fp8_groups how);

/* The matmul of both rounded that such a node stands for. */
struct value *op_fp8_group_product(struct builder *builder, const struct node *node);

/* What the function `name` of accel/model.h makes of n tensors; NULL when one of them is. */
struct value *op_apply(struct builder *builder, const char *name, struct value *const *tensors, int n);

#endif
