/* StableHLO (github.com/openxla/stablehlo, docs/spec.md): a graph as operations of that dialect of MLIR.
 *
 * Each kind of operation says in its own file how it is lowered (op_kind.lower), by the functions below. They give
 * tensors of the function that is being written, in the order in which they are made; one that is there already is
 * taken again, and what nothing uses is not written. After an error, which is reported once, what they give is of no
 * meaning, and the module is not written.
 *
 * Floating point is computed in float32, as the kernels of all devices do: hlo_input widens 16 bits, and hlo_result
 * rounds to the type of the node's output. */
#ifndef ACCEL_STABLEHLO_STABLEHLO_H
#define ACCEL_STABLEHLO_STABLEHLO_H

#include <assert.h>

#include "gen/ir/op.h"

struct stablehlo;

/* Types of elements: those of the graph, in its order, truth values, and the number of a device. */
enum hlo_type { HLO_F32, HLO_I32, HLO_BF16, HLO_F16, HLO_UI8, HLO_I64, HLO_F64, HLO_I8, HLO_BOOL, HLO_UI32 };
static_assert((int)HLO_BOOL == (int)DTYPE_INT8 + 1, "each type of the graph is one");

/* A tensor. */
struct hlo {
  int item, result; /* the operation that makes it, and which of its results it is */
  struct shape shape;
  enum hlo_type type;
  bool is_number; /* `number` in all positions, of whatever shape and type the other operand has */
  double number;
};

/* ---- The node that a rule is of ---- */

const struct node *hlo_node(const struct stablehlo *hlo);
struct arena *hlo_arena(const struct stablehlo *hlo);

/* An input: 16 bits as float32, or in its own type. */
struct hlo hlo_input(struct stablehlo *hlo, int input);
struct hlo hlo_raw_input(struct stablehlo *hlo, int input);

/* Output `output` of the node, under the output's shape and in its type. */
void hlo_result(struct stablehlo *hlo, int output, struct hlo tensor);

/* Reports why the node cannot be lowered, at the model's line; gives a tensor of no meaning. */
struct hlo hlo_fail(struct stablehlo *hlo, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* ---- Elements: operands of different shapes are broadcast by NumPy's rule ---- */

struct hlo hlo_number(double value);
struct hlo hlo_unary(struct stablehlo *hlo, const char *operation, struct hlo x);
struct hlo hlo_binary(struct stablehlo *hlo, const char *operation, struct hlo a, struct hlo b);
struct hlo hlo_add(struct stablehlo *hlo, struct hlo a, struct hlo b);
struct hlo hlo_sub(struct stablehlo *hlo, struct hlo a, struct hlo b);
struct hlo hlo_mul(struct stablehlo *hlo, struct hlo a, struct hlo b);
struct hlo hlo_div(struct stablehlo *hlo, struct hlo a, struct hlo b);

/* Truth values: `direction` is EQ, NE, GE, GT, LE or LT. */
struct hlo hlo_compare(struct stablehlo *hlo, const char *direction, struct hlo a, struct hlo b);
struct hlo hlo_select(struct stablehlo *hlo, struct hlo condition, struct hlo yes, struct hlo no);

/* x in another type; a truth value as 1 or 0. */
struct hlo hlo_convert(struct stablehlo *hlo, struct hlo x, enum hlo_type type);

/* ---- Shapes ---- */

struct hlo hlo_reshape(struct stablehlo *hlo, struct hlo x, struct shape shape);
struct hlo hlo_broadcast(struct stablehlo *hlo, struct hlo x, struct shape shape);
/* Dimension i of x becomes dimension dims.dim[i] of `shape`. */
struct hlo hlo_broadcast_in(struct stablehlo *hlo, struct hlo x, struct shape shape, struct shape dims);
struct hlo hlo_transpose(struct stablehlo *hlo, struct hlo x, struct shape order);
struct hlo hlo_exchange(struct stablehlo *hlo, struct hlo x, int a, int b);
struct hlo hlo_slice(struct stablehlo *hlo, struct hlo x, int axis, int64_t start, int64_t count);
/* With `value` before and after; a negative number takes away. */
struct hlo hlo_pad(struct stablehlo *hlo, struct hlo x, int axis, int64_t before, int64_t after, double value);
struct hlo hlo_concat(struct stablehlo *hlo, const struct hlo *parts, int count, int axis);
struct hlo hlo_reverse(struct stablehlo *hlo, struct hlo x, int axis);

/* 0, 1, … along an axis of the shape. */
struct hlo hlo_iota(struct stablehlo *hlo, struct shape shape, int axis, enum hlo_type type);

/* A table of numbers. */
struct hlo hlo_table(struct stablehlo *hlo, const double *values, struct shape shape, enum hlo_type type);

/* ---- Sums and products ---- */

/* Over the axes, by "add", "maximum" or "minimum", from its neutral element; `keeps`: these axes stay, of extent 1. */
struct hlo hlo_reduce(struct stablehlo *hlo, const char *operation, struct hlo x, struct shape axes, bool keeps);
/* The same over the last axis, which stays. */
struct hlo hlo_reduce_rows(struct stablehlo *hlo, const char *operation, struct hlo x);
/* The mean over the last axis, which stays; the sum over all others, which are then gone. */
struct hlo hlo_row_mean(struct stablehlo *hlo, struct hlo x);
struct hlo hlo_column_sums(struct stablehlo *hlo, struct hlo x);
/* ln of the sum of e^x over the last axis, which stays, of extent 1. */
struct hlo hlo_log_sum_exp(struct stablehlo *hlo, struct hlo x);
/* The position of the largest along an axis, which is then gone; of equal ones the first. int32. */
struct hlo hlo_argmax(struct stablehlo *hlo, struct hlo x, int axis);

/* The sum of products over axis `along_a` of a and `along_b` of b: [batch…][rest of a][rest of b], where the first
 * `batch` dimensions of both are the same. In float32. */
struct hlo hlo_dot(struct stablehlo *hlo, struct hlo a, struct hlo b, int batch, int along_a, int along_b);

/* ---- Windows of images ---- */

/* A convolution of a and b. `dims` says which of their dimensions are which, and which of the result: of a and the
 * result b is the batch and f the channels, of b i and o are those of a and of the result; 0 and 1 are height and
 * width. Pairs are of these: how far the window goes in a step, how many zeros are put before and after a (less than 0:
 * so many elements are left out), and the distance of neighbours in a and in b. */
struct hlo_convolution {
  const char *dims; /* "[b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1]" */
  struct shape shape;
  int64_t step[2], before[2], after[2], spread_a[2], spread_b[2];
  int64_t groups;       /* of channels: b has those of a group */
  int64_t batch_groups; /* of the batch of a, each with its part of the result's channels */
};
struct hlo hlo_convolve(struct stablehlo *hlo, struct hlo a, struct hlo b, const struct hlo_convolution *how);

/* Windows of x [batch][channels][height][width]; `padding` is before and after. */
struct hlo_windows {
  int64_t size[2], step[2], padding[2];
};
/* The largest of each window: `shape` is that of the result. And the reverse: each element of dy is added to the first
 * of the largest elements of its window of x. */
struct hlo hlo_window_max(struct stablehlo *hlo, struct hlo x, const struct hlo_windows *windows, struct shape shape);
struct hlo hlo_window_max_backward(struct stablehlo *hlo, struct hlo dy, struct hlo x,
                                   const struct hlo_windows *windows);

/* ---- Rows ---- */

/* x's rows index[…]: [index…][row], int32 and within x. */
struct hlo hlo_rows(struct stablehlo *hlo, struct hlo x, struct hlo index);
/* [rows][row]: the sum of the rows of `x` [index…][row] whose index is that number; those of others are left out. */
struct hlo hlo_add_rows(struct stablehlo *hlo, int64_t rows, struct hlo index, struct hlo x);
/* Of each element of the index the element of x that it says along the axis; the index has x's shape but for that. */
struct hlo hlo_take(struct stablehlo *hlo, struct hlo x, struct hlo index, int axis);
/* The reverse: zeros of `shape`, to which x, which is as the index, is added there. */
struct hlo hlo_put(struct stablehlo *hlo, struct shape shape, struct hlo index, struct hlo x, int axis);

/* `count` elements along an axis from `start` on, an int32 of no dimensions, and x with a part put there; a start that
 * leaves too few elements is moved back. */
struct hlo hlo_slice_at(struct stablehlo *hlo, struct hlo x, int axis, struct hlo start, int64_t count);
struct hlo hlo_put_at(struct stablehlo *hlo, struct hlo x, struct hlo part, int axis, struct hlo start);

/* The positions along the last axis, int32, in which x is in order there, from the largest or from the smallest
 * element on; of equal ones the first comes first. */
struct hlo hlo_order(struct stablehlo *hlo, struct hlo x, bool descending);

/* ---- Random numbers ---- */

/* So many words of 32 bits, as int64, that the device's kernels draw at this site of the function (accel_philox of
 * accel/functions.h, word i at counter (i / 4, site)), under the key that the function is called with. */
struct hlo hlo_random_words(struct stablehlo *hlo, int64_t count, int64_t site);

/* ---- Loops ---- */

enum { HLO_MOST_IN_LOOP = 8 };

/* A loop over steps, from 0 on or, `backward`, from the last one down. A step has as its operands what the one before
 * it left, a row of each of `sliced`, whose rows are along `axis`, and `whole`. */
struct hlo_loop {
  const char *name; /* of a step, "lstm_step" */
  int64_t steps;
  bool backward;
  int axis;
  int n_carried, n_sliced, n_whole, n_kept;
  struct hlo carried[HLO_MOST_IN_LOOP]; /* what the first step has; after the loop what the last one left */
  struct hlo sliced[HLO_MOST_IN_LOOP], whole[HLO_MOST_IN_LOOP];
  struct hlo
      kept[HLO_MOST_IN_LOOP]; /* shape and type of rows that steps give; after the loop all of them along `axis` */
};

/* The operands of a step: rows have no dimension `axis`. The step sets carried[] to what it leaves, and kept[] to its
 * rows. No other tensors may be used there, and no inputs or results of the node. */
struct hlo_step_operands {
  struct hlo carried[HLO_MOST_IN_LOOP], rows[HLO_MOST_IN_LOOP], whole[HLO_MOST_IN_LOOP], kept[HLO_MOST_IN_LOOP];
};
void hlo_run_loop(struct stablehlo *hlo, struct hlo_loop *loop,
                  void (*step)(struct stablehlo *hlo, struct hlo_step_operands *at));

#endif
