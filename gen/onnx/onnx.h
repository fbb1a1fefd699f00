/* Onnx: a graph of ONNX (github.com/onnx/onnx, onnx/onnx.proto and docs/Operators.md) as it is made of a model's graph.
 *
 * Each kind of operation says in its own file which operators of ONNX it is made of (op_kind.onnx), by the functions
 * below. They give names of tensors of ONNX, which live in the graph's arena. An operator that is there already, with
 * the same inputs and attributes, is taken again. After an error, which is reported once, what they give is of no
 * meaning, and the graph is not written.
 *
 * Extents may follow the batch and the length of the sequence, which are known when the graph of ONNX runs: the model's
 * graph is there at several sizes of both, and an extent is what fits all of them. */
#ifndef ACCEL_ONNX_ONNX_H
#define ACCEL_ONNX_ONNX_H

#include "gen/base/text.h"
#include "gen/ir/op.h"

struct onnx;

/* base + batch B + sequence T + both B T */
struct onnx_extent {
  int64_t base, batch, sequence, both;
};

/* ---- The node that a rule is of ---- */

struct arena *onnx_arena(const struct onnx *onnx);
int onnx_n_inputs(const struct onnx *onnx);
const char *onnx_input(struct onnx *onnx, int input);
int onnx_rank(const struct onnx *onnx, int input);
enum dtype onnx_dtype(const struct onnx *onnx, int input);
int onnx_result_rank(const struct onnx *onnx);
enum dtype onnx_result_dtype(const struct onnx *onnx);

/* The extent of an input, or of result 0, along an axis, which counts from the end where it is negative. */
struct onnx_extent onnx_dim(struct onnx *onnx, int input, int axis);
struct onnx_extent onnx_result_dim(struct onnx *onnx, int axis);

/* Whether the node has an attribute. */
bool onnx_has(const struct onnx *onnx, const char *name);

/* A rule reads all attributes of its node, since one that it does not know may change the result, or says of one that
 * it changes nothing: extents that the result's shape has, and what only training needs. */
void onnx_ignore(struct onnx *onnx, const char *name);

/* Attributes that are the same at all sizes; an error where they are not. */
int64_t onnx_int(struct onnx *onnx, const char *name);
double onnx_real(struct onnx *onnx, const char *name);
struct shape onnx_ints(struct onnx *onnx, const char *name);
const double *onnx_reals(struct onnx *onnx, const char *name);

/* Attributes that may follow the sizes: a whole number; a number, as a float32 tensor of no dimensions. */
struct onnx_extent onnx_int_extent(struct onnx *onnx, const char *name);
const char *onnx_real_tensor(struct onnx *onnx, const char *name);

/* An attribute `window` of so many positions along the sequence: those that are 0 or as long as `positions` say nothing
 * at their size. 0: none at any. */
int64_t onnx_window(struct onnx *onnx, const char *name, int input, int axis);

/* Whether a number is the same at all sizes, and which; whether two are one. */
bool onnx_is_fixed(struct onnx_extent extent);
bool onnx_is_same(struct onnx_extent a, struct onnx_extent b);

/* The result of the node. Results without one are of no use to other nodes. */
void onnx_result(struct onnx *onnx, int output, const char *tensor);

/* Reports why the node cannot be in ONNX, at the model's line; gives "". */
const char *onnx_fail(struct onnx *onnx, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* ---- Operators ---- */

/* The outputs of an operator, and its first one. Attributes are ints, reals and lists of ints. */
const char *const *onnx_node(struct onnx *onnx, const char *operator, const char * const * inputs, int n_inputs,
                             const struct attribute *attributes, int n_attributes, int n_outputs);
const char *onnx_op(struct onnx *onnx, const char *operator, const char * const * inputs, int n_inputs,
                    const struct attribute *attributes, int n_attributes);
const char *onnx_unary(struct onnx *onnx, const char *operator, const char * x);
const char *onnx_binary(struct onnx *onnx, const char *operator, const char * a, const char *b);
const char *onnx_ternary(struct onnx *onnx, const char *operator, const char * a, const char *b, const char *c);

/* An operator with one attribute, a whole number. */
const char *onnx_with(struct onnx *onnx, const char *operator, const char * x, const char *attribute, int64_t value);

/* x in another type; as booleans. */
const char *onnx_cast(struct onnx *onnx, const char *x, enum dtype dtype);
const char *onnx_truth(struct onnx *onnx, const char *x);

/* x under other extents, with its dimensions in another order, with two of its `rank` ones exchanged, and the part
 * [start, end) along an axis. */
const char *onnx_reshape(struct onnx *onnx, const char *x, const struct onnx_extent *extents, int count);
const char *onnx_transpose(struct onnx *onnx, const char *x, struct shape order);
const char *onnx_exchange(struct onnx *onnx, const char *x, int rank, int a, int b);
const char *onnx_slice(struct onnx *onnx, const char *x, int axis, struct onnx_extent start, struct onnx_extent end);

/* x with rows[…] added to its row index[…][0], which is int64. */
const char *onnx_add_rows(struct onnx *onnx, const char *x, const char *index, const char *rows);

/* ---- Loops ---- */

/* What a loop does in each step, the body of the operator Scan: operators between its begin and its end are of it, and
 * may take tensors from outside. */
struct onnx_body {
  struct text outside; /* the operators before it */
  struct text fields;  /* its inputs and outputs, as fields of a GraphProto */
  int made;            /* operators and constants that are there when it begins */
};
void onnx_begin_body(struct onnx *onnx, struct onnx_body *body);

/* Its next input: first its states, then the step's part of each input. */
const char *onnx_body_input(struct onnx *onnx, struct onnx_body *body);

/* Its next output: first the states after the step, then the step's part of each output. */
void onnx_body_output(struct onnx *onnx, struct onnx_body *body, const char *tensor);

/* Ends the body. The outputs of the loop over axis 1 of the inputs, which follow on the first states among `tensors`:
 * the last states, and outputs along axis 1, `n_outputs` of both together. */
const char *const *onnx_scan(struct onnx *onnx, struct onnx_body *body, const char *const *tensors, int n_tensors,
                             int n_states, int n_outputs);

/* ---- Constants ---- */

/* A number of no dimensions, in float32 or as int64; a list of numbers in a type. */
const char *onnx_float(struct onnx *onnx, double value);
const char *onnx_whole(struct onnx *onnx, int64_t value);
const char *onnx_list(struct onnx *onnx, enum dtype dtype, const double *values, int64_t count);

/* Extents as int64 [count], and one of no dimensions. */
const char *onnx_shape(struct onnx *onnx, const struct onnx_extent *extents, int count);
const char *onnx_count(struct onnx *onnx, struct onnx_extent extent);

/* 0, 1, … below an extent, int64. */
const char *onnx_range(struct onnx *onnx, struct onnx_extent extent);

/* An extent that is fixed. */
struct onnx_extent onnx_fixed(int64_t value);

/* The sum of two, and a multiple of one. */
struct onnx_extent onnx_plus(struct onnx_extent a, struct onnx_extent b);
struct onnx_extent onnx_times(struct onnx_extent a, int64_t factor);

#endif
