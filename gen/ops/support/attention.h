/* What attention and its forms with a bias and over several ranks share (gen/ops/attention.c): a node with q, k, v and,
 * where there are documents, starts as inputs, y and lse as its first outputs, and the attributes causal, window and
 * scale; backward with dy, q, k, v, y, lse and starts, and dq, dk, dv. Where scores have a bias it is instead of
 * starts.
 */
#ifndef ACCEL_OPS_ATTENTION_H
#define ACCEL_OPS_ATTENTION_H

#include "gen/ops/support/support.h"

/* Sets shapes[] and dtypes[] of y and lse. 2; 0 with *error set. */
int op_infer_attention(struct arena *arena, const struct node *node, struct shape *shapes, enum dtype *dtypes,
                       const char **error);

/* The same of inputs q, k and v alone. */
int op_infer_attended(struct arena *arena, const struct node *node, struct shape *shapes, enum dtype *dtypes,
                      const char **error);

/* The same of dq, dk and dv. 3. */
int op_infer_attention_backward(struct arena *arena, const struct node *node, struct shape *shapes, enum dtype *dtypes,
                                const char **error);

/* y and lse; dq, dk and dv. */
void op_attention_reference(const struct node *node, const double *const *inputs, double *const *outputs);
void op_attention_backward_reference(const struct node *node, const double *const *inputs, double *const *outputs);

/* Whether an operand may have these strides: in rows of columns that are together, which may be anywhere. */
bool op_attention_accepts(const struct node *node, bool output, int index, const int64_t *strides);

/* Writes y and lse, or their gradients, as operations of StableHLO. A bias is the last input. */
void op_lower_attention(struct stablehlo *hlo, bool biased);
void op_lower_attention_backward(struct stablehlo *hlo, bool biased);

/* Placements of a split along samples or heads, as op_ranks.place sets them. */
bool op_place_attention(const struct node *node, int seed, int64_t ranks, struct placement *placements);

/* Operations of matmuls. */
double op_attention_flops(const struct node *node);
double op_attention_backward_flops(const struct node *node);

/* KV block sizes that a kernel can choose from, of `keys` keys in a row: forward, backward. */
int op_attention_variants(int64_t keys, const char **variants);
int op_attention_backward_variants(int64_t keys, const char **variants);

/* Whether input `index` is a bias of scores of q with so many keys: [batch][heads][queries][keys], each of which may
 * be 1, of q's type; an error otherwise. */
bool op_check_bias(struct arena *arena, const struct node *node, int index, const struct value *q, int64_t keys,
                   const char **error);

/* Shape of its lse, which has two parts, the highest score of each row and the logarithm of the sum of e^(score -
 * highest): a bias may be so low that in float32 their sum is the first one alone. Rows are those of
 * op_infer_attended's lse. */
struct shape op_lse_in_parts(struct shape rows);

/* What the backward of attention with a bias gives for it, where the attribute "learnt" says that it is wanted, after
 * `count` other outputs: dbias, which has all heads, queries and keys, and workspace, sums over parts of the batch.
 * Returns how many outputs there are. */
int op_infer_bias_gradient(const struct node *node, int count, int64_t keys, struct shape *shapes, enum dtype *dtypes);

/* Gradients of q, k, v and the bias by the node of this kind, of which output `output` is that of the bias. */
void op_biased_gradient(struct builder *builder, const struct node *node, const char *kind, int output,
                        struct value *dy, struct value **dx);

/* References of attention with a bias, and of its ring of one rank: y and lse; dq, dk, dv and dbias. */
void op_biased_reference(const struct node *node, const double *const *inputs, double *const *outputs);
void op_biased_backward_reference(const struct node *node, const double *const *inputs, double *const *outputs);

/* Of attention with a bias: which strides operands may have, placements, and what a position needs. */
bool op_biased_accepts(const struct node *node, bool output, int index, const int64_t *strides);
bool op_place_biased(const struct node *node, int seed, int64_t ranks, struct placement *placements);

/* Writes attention as operators of ONNX; `bias` and `starts` are the inputs that are these, 0 where there is none. */
void op_attention_onnx(struct onnx *onnx, int bias, int starts);

/* Attention of this rank's queries to the keys of all `ranks` ranks along `axis`, which are passed round a ring: the
 * replacement of `node` over balanced parts of its q, k and v, and whole starts or its queries' rows of a bias. Returns
 * y (gen/ops/ring_attention.c). */
struct value *op_ring_attention(struct builder *builder, const struct node *node, int64_t ranks, int64_t axis);

/* What bounds the scores of an attention, cap tanh(score / cap); 0: nothing. No kernel over whole sequences has it. */
double op_attention_cap(const struct node *node);
bool op_attention_lacks_kernel(const struct node *node);

/* Capped causal attention, of other operations. */
struct value *op_attention_written_out(struct builder *builder, const struct node *node);

#endif
