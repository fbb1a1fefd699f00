/* Collectives: what the ranks of a run do together. Every rank along an axis of the mesh calls the same ones in the
 * same order with the same counts; what comes out is the same on all of them, to the last bit.
 *
 * The names do not say who carries the traffic: on CPUs it is MPI (runtime/mpi). An error of it, or a rank that does
 * not come within the program's timeout, ends all processes with one message. */
#ifndef ACCEL_COLLECTIVES_H
#define ACCEL_COLLECTIVES_H

#include "trainer.h"

/* values[i] becomes its sum over the ranks along `axis`. Returns when it has; the caller owns values[]. */
void accel_all_reduce(enum accel_axis axis, float *values, size_t count);

/* The sum of x[] over the ranks along `axis` becomes y[], which may be x[] itself. */
void accel_all_reduce_from(enum accel_axis axis, const float *x, float *y, size_t count);

/* The same of bfloat16; each of the ranks - 1 additions is rounded. */
void accel_all_reduce_bfloat16_from(enum accel_axis axis, const uint16_t *x, uint16_t *y, size_t count);

/* The same of float16. */
void accel_all_reduce_float16_from(enum accel_axis axis, const uint16_t *x, uint16_t *y, size_t count);

/* A tensor of which each rank along `axis` has a part is `outer` blocks in a row, each of them a range of `length`
 * elements for each rank, in their order; a part is a rank's ranges in a row. y[] becomes the whole of the ranks' parts
 * x[]. */
void accel_all_gather_parts(enum accel_axis axis, const float *x, float *y, size_t outer, size_t length);

/* The same of bfloat16. */
void accel_all_gather_bfloat16_parts(enum accel_axis axis, const uint16_t *x, uint16_t *y, size_t outer, size_t length);

/* The same of float16. */
void accel_all_gather_float16_parts(enum accel_axis axis, const uint16_t *x, uint16_t *y, size_t outer, size_t length);

/* y[] becomes this rank's part of the sum of the ranks' wholes x[], added up in the order of the ranks; in 16 bits the
 * sum is rounded once. work[] has space for a whole. */
void accel_reduce_scatter_parts(enum accel_axis axis, const float *x, float *y, float *work, size_t outer,
                                size_t length);

/* The same of bfloat16. */
void accel_reduce_scatter_bfloat16_parts(enum accel_axis axis, const uint16_t *x, uint16_t *y, uint16_t *work,
                                         size_t outer, size_t length);

/* The same of float16. */
void accel_reduce_scatter_float16_parts(enum accel_axis axis, const uint16_t *x, uint16_t *y, uint16_t *work,
                                        size_t outer, size_t length);

/* Exchanges parts of x[], which has one of `bytes` bytes for each rank along `axis`, in their order: y[] has the part
 * that each of them has for this one, in the same order. The two are apart. */
void accel_all_to_all(enum accel_axis axis, const void *x, void *y, size_t bytes);

/* Rows that are sorted by group, where each of the ranks along `axis` has as many of the `groups` as the others, the
 * first ranks the first ones. starts[groups + 1]: where the groups start in this rank's `rows` rows, ascending from 0;
 * what is after the last group is of none. all[ranks][groups + 1] becomes the starts of each rank, and
 * own[groups / ranks + 1] where this rank's groups start among the rows that accel_dispatch_rows brings. Starts that do
 * not ascend within `rows` end all processes. */
void accel_exchange_starts(enum accel_axis axis, const int32_t *starts, int32_t *own, int32_t *all, size_t groups,
                           size_t rows);

/* Rows of `width` bytes go to the ranks of their groups: x[rows] is this rank's, y[ranks * rows] gets the rows of this
 * rank's groups, group by group, of each those of the first rank first, and zeros after them. all: by
 * accel_exchange_starts. The two do not overlap. */
void accel_dispatch_rows(enum accel_axis axis, const void *x, void *y, const int32_t *all, size_t groups, size_t rows,
                         size_t width);

/* They come back: x[ranks * rows] is as accel_dispatch_rows leaves it, y[rows] gets this rank's rows at their
 * positions, and zeros after those of the last group. */
void accel_collect_rows(enum accel_axis axis, const void *x, void *y, const int32_t *all, size_t groups, size_t rows,
                        size_t width);

/* The same as accel_all_reduce of float64. */
void accel_all_reduce_doubles(enum accel_axis axis, double *values, size_t count);

/* The same of integers, exactly. */
void accel_all_reduce_counts(enum accel_axis axis, int64_t *values, size_t count);

/* values[] becomes that of the first rank along `axis`, whatever its elements of four bytes are. */
void accel_broadcast_values(enum accel_axis axis, float *values, size_t count);

/* Sums over the ranks in one order: of ranks that are half their number apart, of those a quarter apart, and so on.
 * Their number is a power of two. Of values of floats each rank adds up its part and sends it to the others, by halves
 * (Rabenseifner, "Optimization of Collective Reduction Operations", ICCS 2004); `workspace` is for (count + 1) / 2. */
void accel_all_reduce_by_tree(enum accel_axis axis, float *values, size_t count, float *workspace);

/* The same of float64: at most 16 values. */
void accel_all_reduce_doubles_by_tree(enum accel_axis axis, double *values, size_t count);

/* Begins accel_all_reduce_by_tree of gradients. Among ranks of one machine it runs concurrently with other work, until
 * it is waited for by accel_wait_collectives or accel_wait_reductions, and values[] and workspace[] belong to it until
 * then, but for the next such sum, which starts after it and may have the same workspace[]; between machines it has
 * ended when this returns. */
void accel_start_all_reduce_by_tree(enum accel_axis axis, float *values, size_t count, float *workspace);

/* Begins such sums of shards in the order of the ranks, `shard_size` elements for each and `last` for the last one,
 * each at `own` of its rank. values[] is then no more what it was, and `workspace` is for half of the shards, the last
 * one among them. */
void accel_start_reduce_scatter_by_tree(enum accel_axis axis, float *values, float *own, size_t shard_size, size_t last,
                                        float *workspace);

/* values[i] becomes the largest of the ranks' along `axis`; where one of them is not a number, not a number. */
void accel_all_reduce_largest(enum accel_axis axis, double *values, size_t count);

/* Begins the same as accel_all_reduce, so that it runs concurrently with other work: nothing of values[] is touched
 * until accel_wait_collectives. Those in flight end in their order. */
void accel_start_all_reduce(enum accel_axis axis, float *values, size_t count);

/* The same with values that are rounded to `dtype`, float16 or bfloat16, and added up as such; `wire` has space for
 * them until accel_wait_collectives. */
void accel_start_all_reduce_as(enum accel_axis axis, enum accel_dtype dtype, float *values, uint16_t *wire,
                               size_t count);

/* Begins: values of all ranks along `axis`, in shards in the order of the ranks, `shard_size` elements for each and
 * `last` for the last one, are added up, each shard at `own` of its rank. Nothing of both is touched until it is waited
 * for, by accel_wait_collectives or accel_wait_reductions. */
void accel_start_reduce_scatter(enum accel_axis axis, const float *values, float *own, size_t shard_size, size_t last);

/* The same, and what is received at `arriving` is added to `own`. */
void accel_start_reduce_scatter_onto(enum accel_axis axis, const float *values, float *own, float *arriving,
                                     size_t shard_size, size_t last);

/* Begins the same as accel_start_all_reduce when the sum that was started last has ended: of what that gives. Several
 * after one sum, of the same values, begin one after the other; an axis has the same position after all sums. It is
 * waited for by accel_wait_collectives alone, and not counted by accel_wait_reductions. */
void accel_start_all_reduce_chained(enum accel_axis axis, float *values, size_t count);

/* Begins: shards as above, of which each rank has its own in its position among values, become those of all ranks.
 * Nothing of them is touched until accel_wait_gathers. */
void accel_start_all_gather(enum accel_axis axis, float *values, size_t shard_size, size_t last);

/* The same, from elsewhere: each rank has its own at `own`. */
void accel_start_all_gather_from(enum accel_axis axis, const float *own, float *values, size_t shard_size, size_t last);

/* Lets collectives in flight progress: an engine without a thread of its own gets on only when it is called. */
void accel_advance_collectives(void);

/* Waits until all sums in flight have ended. */
void accel_wait_collectives(void);

/* Waits until the first `count` of the sums that were started since then have ended. */
void accel_wait_reductions(size_t count);

/* Waits until all gathers in flight have ended. */
void accel_wait_gathers(void);

/* Gives values[] to rank `to` along `axis`, counted from 0, which receives as many bytes from this one. Returns when
 * values[] may be written again, which may be no sooner than that rank receives, and all that was started is sent. */
void accel_send(enum accel_axis axis, int to, const void *values, size_t bytes);

/* The same, but returns at once. values[] may be written again when accel_receive, accel_send or accel_wait_sends has
 * returned. */
void accel_start_send(enum accel_axis axis, int to, const void *values, size_t bytes);

/* Waits until all that was started is sent. */
void accel_wait_sends(void);

/* What rank `from` sends to this one becomes values[], and what this one has started to send is sent. Messages of one
 * rank to another come in the order in which they were sent. */
void accel_receive(enum accel_axis axis, int from, void *values, size_t bytes);

/* Waits until what was started from values[] is sent. Returns at once where nothing is on its way from there. */
void accel_wait_send(const void *values);

/* As accel_receive, but what this rank has started may stay on its way. */
void accel_take(enum accel_axis axis, int from, void *values, size_t bytes);

/* Gives x[] to the rank that is `to` further along `axis` than this one, while y[] becomes what the rank that is `from`
 * further gives; after the last one comes the first, and negative numbers count backwards. All ranks along the axis
 * call it, with `to` and `from` whose sum is a multiple of their number. The two arrays are apart. */
void accel_send_receive(enum accel_axis axis, int to, const void *x, int from, void *y, size_t bytes);

/* values[i] becomes its sum over this rank and rank `other` along `axis`, on both of them, which both call this. */
void accel_add_other(enum accel_axis axis, int other, float *values, size_t count);

/* Adds up, over the ranks along `axis`, what the evaluation at hand has: losses, in the order of the tree where
 * program->round says so, and predictions compared with labels. */
void accel_all_reduce_eval(enum accel_axis axis);

#endif
