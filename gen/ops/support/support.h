/* What the files of gen/ops share: shape rules, shapes, costs, and reading the arguments of the functions of
 * accel/model.h. */
#ifndef ACCEL_OPS_SUPPORT_H
#define ACCEL_OPS_SUPPORT_H

#include "gen/ops/support/nodes.h"

/* ---- Shape rules ---- */

/* "x [3][4]": input `index` of a node as an error names it; with the model's name where it has one. */
const char *op_operand_text(struct arena *arena, const struct node *node, int index);

/* Sets *error to the node's kind and a sentence; returns 0, as infer does after an error. */
int op_fail(struct arena *arena, const struct node *node, const char **error, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* One result of this shape and dtype; returns 1, the number of results. */
int op_result(struct shape *shapes, enum dtype *dtypes, struct shape shape, enum dtype dtype);

/* Whether input `index` has this dtype, or is of floating point, or has at least this rank, or exactly this shape (as a
 * `what`, which says why); an error otherwise. */
bool op_check_dtype(struct arena *arena, const struct node *node, int index, enum dtype dtype, const char **error);
bool op_check_float(struct arena *arena, const struct node *node, int index, const char **error);
bool op_check_rank(struct arena *arena, const struct node *node, int index, int rank, const char **error);
bool op_check_shape(struct arena *arena, const struct node *node, int index, struct shape shape, const char *what,
                    const char **error);

/* Whether the first `count` inputs are of one floating-point type; an error otherwise. */
bool op_check_same_float(struct arena *arena, const struct node *node, int count, const char **error);

/* The infer of a kind whose result is like its first input, of floating point. */
int op_infer_like(struct arena *arena, const struct node *node, struct shape *shapes, enum dtype *dtypes,
                  const char **error);

/* Of the backward of a normalisation, which takes dy, x and the weight first: dy must be like x, and the `count`
 * results are the gradients of x, of the weight and of the bias. Returns count, or 0 after an error. */
int op_infer_norm_backward(struct arena *arena, const struct node *node, struct shape *shapes, enum dtype *dtypes,
                           int count, const char **error);

/* ---- Shapes ---- */

/* All dimensions but the last: their product, and as a shape; the last extent. A scalar is one row of one column. */
int64_t op_rows(struct shape shape);
int64_t op_columns(struct shape shape);
struct shape op_leading(struct shape shape);

/* shape with dimension `axis` set to `extent`. */
struct shape op_with_extent(struct shape shape, int axis, int64_t extent);

/* A shape as an [outer][extent of axis][inner] block. */
struct op_block {
  int64_t outer, extent, inner;
};
struct op_block op_block(struct shape shape, int axis);

/* Whether the strides are those of a row-major tensor without gaps; strides of dimensions of extent 1 do not count. */
bool op_is_dense(struct shape shape, const int64_t *strides);

/* Whether the dimensions [first, last) are one dimension of one stride, *stride; with none left, *stride is
 * `fallback`. Dimensions of extent 1 do not count. */
bool op_collapse(struct shape shape, const int64_t *strides, int first, int last, int64_t fallback, int64_t *stride);

/* ---- Normalisations with additions ---- */

/* The references of kinds with an addition before or after them (gen/plan/graph/rewrites.h), by op_fusion.plain. */
void op_reference_of_sum(const struct node *node, const double *const *inputs, double *const *outputs);
void op_reference_plus(const struct node *node, const double *const *inputs, double *const *outputs);
void op_reference_with_bits16(const struct node *node, const double *const *inputs, double *const *outputs);

/* ---- Means ---- */

/* The mean of a kind that preserves that of its first input, of one that adds two. */
struct mean op_mean_preserved(const struct node *node, const struct mean *inputs);
struct mean op_mean_added(const struct node *node, const struct mean *inputs);

/* The mean over the rows of input 0 whose target, an element of the last input, is not the attribute `ignore`; output 2
 * is 1 / their number. */
struct mean op_mean_over_targets(const struct node *node, const struct mean *inputs);

/* ---- Statistics ---- */

/* The mean of `count` elements, and 1 / sqrt(their variance + eps). */
struct op_moments {
  double mean, rstd;
};
struct op_moments op_moments(const double *x, int64_t count, double eps);

/* ---- Random numbers ---- */

/* Word i of Philox-4x32-10 (Salmon, Moraes, Dror, Shaw, SC 2011, section 4.3) at counter (i / 4, site) under the key 0:
 * the numbers of a kernel whose stream is 0. */
uint32_t op_random_word(uint64_t i, uint32_t site);

/* ---- Positions along an axis (op_sequence.along) ---- */

/* Of a kind that computes each row of input 0 alone: every axis but the last is the output's own. All other inputs
 * serve all rows. */
int op_along_rows(const struct node *node, int axis, int input);

/* Of a product of inputs 0 and 1 over their last two dimensions, of which all others are whole. */
int op_along_product(const struct node *node, int axis, int input);

/* Of a kind that computes each line along the attribute `axis` alone; the output has that axis, or lacks it. */
int op_along_others(const struct node *node, int axis, int input);

/* op_ranks.place of such a product. */
bool op_place_product(const struct node *node, int seed, int64_t ranks, struct placement *placements);

/* ---- Positions that follow on earlier ones (op_sequence.incremental) ---- */

/* Whether positions are along an axis in their order, an element each; whether along this one, with nothing before the
 * first one. */
bool op_is_plain(struct timeline timeline);
bool op_is_at(struct timeline timeline, int axis);

/* A buffer of the node's own that caches what it needs of earlier positions: float32 of the shape, zero when a program
 * starts. */
struct value *op_cache(struct builder *builder, const struct new_positions *new, const char *name, struct shape shape);

/* Input `input`, whose positions are along `axis`, after the `count` elements before them, which a cache holds; at the
 * beginning those are `first`, or zeros if it is NULL. Sets new->timeline to that of the result. */
struct value *op_conv_cache(struct builder *builder, struct new_positions *new, int input, int64_t count,
                            struct value *first);

/* Whether input `index` is a position, int32 [1], and the one after it, where there is one, how many new positions are
 * valid. */
bool op_check_at(struct arena *arena, const struct node *node, int index, const char **error);

/* How many of `width` new positions are valid, by input `index` where it is there. */
int64_t op_valid(const struct node *node, const double *const *inputs, int index, int64_t width);

/* ---- Costs ---- */

/* No floating-point work: views and copies. */
double op_flops_none(const struct node *node);
/* `each` for each element of input `index`. */
double op_flops_each(const struct node *node, int index, double each);

/* ---- Arguments ---- */

/* The tensor of argument `index`; NULL after an error elsewhere. */
struct value *op_tensor(const struct argument *arguments, int index);

/* Whether x and y have one shape; an error otherwise, reported for `function`. False without one when either is NULL.
 */
bool op_same_shape(struct builder *builder, const char *function, const struct value *x, const struct value *y);

/* An axis of x as the model wrote it (negative: from the end); -1 after an error, reported for `function`. */
int op_axis(struct builder *builder, const char *function, const struct value *x, const struct argument *argument);

/* Reads the variadic extents from argument `first` on; argument first - 1 is their number. False after an error. An
 * extent of -1 is let through where `may_infer`. */
bool op_extents(struct builder *builder, const char *function, const struct argument *arguments, int count, int first,
                bool may_infer, struct shape *shape);

/* A parameter that starts as `init` whatever the scope says. */
struct value *op_fixed_parameter(struct builder *builder, const struct scope *scope, const char *name,
                                 struct shape shape, enum initializer_kind init);

#endif
