/* Collectives between GPUs, over NCCL. A CUDA trainer calls the names of include/accel/collectives.h too:
 *
 *   accel_start_all_reduce, accel_all_reduce      with addresses of the device's arena, as below; so are
 *   accel_start_all_reduce_chained                 of what a reduce-scatter gives
 *   accel_start_reduce_scatter                    of shards of which the last is not shorter,
 *   accel_start_all_gather, _from                 and what comes together of them,
 *   accel_start_all_reduce_by_tree,               in the order that accel_add_shards has. Each rank is sent its shard
 * of accel_start_reduce_scatter_by_tree            all others' values, in workspace[ranks * last] elements. Such a sum
 *                                                 does not change the values of a reduce-scatter,
 *   accel_broadcast_values                        and what the first rank along an axis has
 *   accel_all_reduce_from, accel_all_gather_parts, accel_reduce_scatter_parts, and those of 16 bits, accel_all_to_all,
 *   accel_send_receive                            of a model's tensors; the compute stream waits for each. Sums are
 *                                                 in NCCL's order, and `work` stays as it is
 *   accel_start_send, accel_send, accel_take,     between neighbouring stages of a pipeline, the messages of a rank to
 *   accel_receive, accel_wait_send, _sends        another in a stream of their own. The compute stream waits where on
 *                                                 a processor the host does
 *   accel_add_other                               of neighbouring stages; the compute stream waits for it
 *   accel_wait_collectives                        makes the compute stream wait for all in flight,
 *   accel_wait_reductions, accel_wait_gathers     for sums, or for what is gathered, while others continue
 *   accel_advance_collectives                     does nothing: NCCL needs no help to progress
 *   accel_all_reduce_doubles, _by_tree, _counts, _score   with values of the host, between steps: not over NCCL
 *
 * A collective waits, in the traffic stream, for what the compute stream holds when it is started, and for those that
 * were started before it. Nothing here waits on the host. All may be in a graph, which ends no sooner than
 * the messages that it starts. */
#ifndef ACCEL_GPU_COLLECTIVES_H
#define ACCEL_GPU_COLLECTIVES_H

#include "../collectives.h"
#include "device.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Joins the groups of the program's mesh, lets NCCL know the arena, and watches from a thread of its own: an error of
 * NCCL, or a rank that is gone, ends all ranks with one message. After accel_gpu_open. */
void accel_gpu_open_collectives(const struct accel_program *program);

/* Begins the sum over the ranks along `axis` of values[count] of any type but uint8. */
void accel_gpu_start_all_reduce(enum accel_axis axis, enum accel_dtype dtype, void *values, size_t count);

/* The same of float64. */
void accel_gpu_start_all_reduce_doubles(enum accel_axis axis, double *values, size_t count);

/* values[count] become their sums over the ranks along `axis`, for which the compute stream waits. */
void accel_gpu_all_reduce_doubles(enum accel_axis axis, double *values, size_t count);

/* Begins: values[i] becomes the largest of the ranks' along `axis`; where one of them is not a number, not a number.
 * None has a sign. */
void accel_gpu_start_all_reduce_largest(enum accel_axis axis, double *values, size_t count);

/* Begins: rank r along `axis` gets in `own` the r-th `count` of the sums of values[ranks * count]. own may be that
 * position in values. */
void accel_gpu_start_reduce_scatter(enum accel_axis axis, enum accel_dtype dtype, const void *values, void *own,
                                    size_t count);

/* What a program with sums by tree defines: puts into the traffic stream that sum[count] becomes that of the shards of
 * all ranks along `axis`, `step` after the one before, in the order of a tree. sum may be the first shard. */
void accel_add_shards(enum accel_axis axis, float *sum, const float *shards, size_t count, size_t step);

/* Begins: all[ranks * count] gets the `own` of each rank, in their order. own may be its position in all. */
void accel_gpu_start_all_gather(enum accel_axis axis, enum accel_dtype dtype, const void *own, void *all, size_t count);

#ifdef __cplusplus
}
#endif

#endif
