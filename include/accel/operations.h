/* Operations on values: those that one process does alone, and those that all do together. Names and meanings are
 * those of Accelerate's utilities (accelerate.utils.operations), whose tuples are lists here. What a function gives
 * is in `store`; NULL: it failed, and the store has a message (value.h).
 *
 * "Each tensor of a value" is each one in it, however deep in lists and maps. What else is in it stays as it is, unless
 * a sentence says that it is an error. */
#ifndef ACCEL_OPERATIONS_H
#define ACCEL_OPERATIONS_H

#include "value.h"

/* ---- Alone ---- */

/* A `stop` after all elements. */
#define ACCEL_TO_END INT64_MAX

/* What recursively_apply calls for a leaf; NULL: it failed, with a message of its own where it leaves one. */
typedef struct accel_value *accel_function(struct accel_store *store, struct accel_value *leaf, void *context);

/* The value with `function` applied to each leaf of which `test` is true; `test` NULL: to each tensor. Other leaves
 * stay, or are an error. */
struct accel_value *accel_recursively_apply(struct accel_store *store, accel_function *function,
                                            struct accel_value *value, void *context,
                                            bool (*test)(const struct accel_value *leaf), bool error_on_other_type);

/* From a list of values that are built alike, one value of that build: each tensor is all of that position one after
 * the other along `dim` (negative: from the last one), of the type that holds all of theirs. A list of one leaf that is
 * no tensor gives that leaf. */
struct accel_value *accel_concatenate(struct accel_store *store, const struct accel_value *list, int dim);

/* Each tensor cut to [start:stop:step] of its first dimension, as Python has it: negative counts from the end, and what
 * is beyond it is cut. step is 1 or more; ACCEL_TO_END is a stop. A scalar is an error. */
struct accel_value *accel_slice_tensors(struct accel_store *store, struct accel_value *value, int64_t start,
                                        int64_t stop, int64_t step);

/* Each tensor as nested lists of numbers, or of booleans; a scalar as a number. */
struct accel_value *accel_listify(struct accel_store *store, struct accel_value *value);

/* Each tensor for `device`, "cpu" or the process's own: as it is, in the host's memory, from where the trainer sends
 * its GPU what that needs. Another device is an error. */
struct accel_value *accel_send_to_device(struct accel_store *store, struct accel_value *value, const char *device);

/* Each tensor of float16 or bfloat16 as float32. */
struct accel_value *accel_convert_to_fp32(struct accel_store *store, struct accel_value *value);

/* What `function` gives for `value`, by accel_convert_to_fp32. */
struct accel_value *accel_convert_outputs_to_fp32(struct accel_store *store, accel_function *function,
                                                  struct accel_value *value, void *context);

/* The first length of the first tensor that lists and maps lead to. -1 with a message: there is none, or it is a
 * scalar. `store` may be NULL, for no message. */
int64_t accel_find_batch_size(struct accel_store *store, const struct accel_value *value);

/* Each tensor's shape and type without its elements. */
struct accel_value *accel_get_data_structure(struct accel_store *store, struct accel_value *value);

/* The way back: a tensor with elements of 0 for each tensor's information. */
struct accel_value *accel_initialize_tensors(struct accel_store *store, struct accel_value *structure);

/* Each tensor's shape as a list of integers. */
struct accel_value *accel_get_shape(struct accel_store *store, struct accel_value *value);

/* This rank's part of a list, or of a tensor's first dimension, or of each of a map, whose items must then be of one
 * length: as equal as they can be, earlier ranks have the longer ones. apply_padding: the last item, or row, is
 * repeated, so that all are as long as the longest. One process alone gets all. Of a map that holds others the items of
 * these are cut as well, at the same positions. */
struct accel_value *accel_split_between_processes(struct accel_store *store, struct accel_value *value,
                                                  bool apply_padding);

/* ---- Together ----
 *
 * All ranks call these in the same order, from the main thread, between steps. Before anything else they compare what
 * they do and with what: when a rank does another operation, has failed before (a value that is NULL), or has a value
 * of another build, shape or type where these must be equal, the operation fails on all ranks, with a message that
 * names the rank and shows both. (Accelerate does this in its debug mode alone; here it costs 16 bytes of each rank.) A
 * rank that does not come within the program's timeout ends all.
 *
 * What comes out is the same on all ranks, to the last bit. */

/* Each tensor of all ranks one after the other along the first dimension; a scalar counts as one of length 1. Values
 * are built alike. Leaves that are no tensors are an error; one process alone gets the value as it is. */
struct accel_value *accel_gather(struct accel_store *store, struct accel_value *value);

/* The lists of all ranks as one, in the order of the ranks, of anything and of any length. What is no list is an
 * error. */
struct accel_value *accel_gather_object(struct accel_store *store, struct accel_value *list);

/* accel_gather, or accel_gather_object where it is asked for or a leaf is no tensor; then cut to the first `remainder`
 * samples: those of a last round that the ranks filled up with samples that they had before. 0: nothing is cut. */
struct accel_value *accel_gather_for_metrics(struct accel_store *store, struct accel_value *value, int64_t remainder,
                                             bool use_gather_object);

/* What becomes of the elements of all ranks. NONE is SUM, as Accelerate's "none" is. */
enum accel_reduction { ACCEL_SUM, ACCEL_MEAN, ACCEL_MAX, ACCEL_NO_REDUCTION };

/* Each tensor's elements over all ranks, times `scale`. Floating types are added up in float64 in the order of the
 * ranks and rounded once; integers wrap around, booleans are true where any is. A mean, or a scale that is not 1, of
 * integers is an error. Leaves that are no tensors are errors. */
struct accel_value *accel_reduce(struct accel_store *store, struct accel_value *value, enum accel_reduction reduction,
                                 double scale);

/* The value with the elements that the rank `from_process` has. Leaves that are no tensors are an error; one process
 * alone gets the value as it is. */
struct accel_value *accel_broadcast(struct accel_store *store, struct accel_value *value, int from_process);

/* The list that the rank `from_process` has, of anything; what other ranks give counts for nothing, but is a list of
 * the same length. */
struct accel_value *accel_broadcast_object_list(struct accel_store *store, struct accel_value *list, int from_process);

/* Each tensor as long along `dim` as the longest of that position on any rank: filled up at its end, or at its
 * beginning, with `pad_index` as its type has it. Tensors without such a dimension stay. Values are built alike but for
 * the lengths; leaves that are no tensors are errors. */
struct accel_value *accel_pad_across_processes(struct accel_store *store, struct accel_value *value, int dim,
                                               double pad_index, bool pad_first);

#endif
