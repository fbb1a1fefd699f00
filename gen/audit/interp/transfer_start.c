/* Functions that start a collective, a send or a prefetch: what each uses until it is waited for. */
#include <string.h>

#include "gen/audit/interp/transfer.h"
#include "gen/audit/program/device.h"

static bool is_on_device(const struct call *call) {
  return call->interp->device != NULL;
}

/* ---- Sums ---- */

static struct value start_sum(const struct call *call, enum transfer_queue queue, int values, int64_t size) {
  struct transfer transfer = {.node = call->node, .queue = queue};
  transfer_use(call, &transfer, values, bounded_multiply(external_max(call, values + 1), size), TRANSFER_WRITES);
  return transfer_start(call, &transfer);
}

static struct value start_float32_sum(const struct call *call) {
  return start_sum(call, TRANSFER_SUM, 1, 4);
}

static struct value start_chained(const struct call *call) {
  return start_sum(call, TRANSFER_CHAINED, 1, 4);
}

static struct value start_double_sum(const struct call *call) {
  return start_sum(call, TRANSFER_SUM, 1, 8);
}

/* The bytes of an element of an argument that is an accel_dtype. */
static int64_t type_size(const struct call *call, int which) {
  static const int64_t sizes[] = {4, 2, 2, 4, 8, 1, 8, 1, 2, 1}; /* in the order of accel/dtype.h */
  struct value dtype = call->arguments[which];
  bool known = value_is_one(dtype) && dtype.low >= 0 && dtype.low < (int64_t)(sizeof sizes / sizeof sizes[0]);
  return known ? sizes[dtype.low] : VALUE_MAX;
}

static struct value start_typed_sum(const struct call *call) {
  return start_sum(call, TRANSFER_SUM, 2, type_size(call, 1));
}

/* accel_start_all_reduce_as(axis, dtype, values, wire, count) */
static struct value start_sum_as(const struct call *call) {
  struct transfer transfer = {.node = call->node, .queue = TRANSFER_SUM};
  int64_t count = external_max(call, 4);
  transfer_use(call, &transfer, 2, bounded_multiply(count, 4), TRANSFER_WRITES);
  transfer_use(call, &transfer, 3, bounded_multiply(count, 2), TRANSFER_WRITES);
  return transfer_start(call, &transfer);
}

/* accel_add_shards(axis, sum, shards, count, step) of the program, which the traffic stream runs between its other
 * work: nothing else is in flight for it. */
static void add_shards(const struct call *call, int sum, int shards, int64_t count, int64_t last) {
  struct interp *interp = call->interp;
  struct function *function = interp->audit->device->adds_shards;
  const struct value arguments[] = {call->arguments[0], call->arguments[sum], call->arguments[shards],
                                    value_integer(count < last ? count : last, count < last ? last : count),
                                    value_integer(last, last)};
  if (function == NULL || function->n_parameters != 5) {
    interp_lose_track(interp, call->node, "accel_add_shards, which adds up what arrives");
    return;
  }
  struct in_flight in_flight = interp->in_flight;
  interp->in_flight = (struct in_flight){0};
  interp_run(interp, function, arguments);
  interp->in_flight = in_flight;
}

/* accel_start_all_reduce_by_tree(axis, values, count, workspace) */
static struct value start_sum_by_tree(const struct call *call) {
  struct transfer transfer = {.node = call->node, .queue = TRANSFER_SUM};
  int64_t count = external_max(call, 2), ranks = external_ranks_along(call), workspace = bounded_add(count, 1) / 2;
  if (is_on_device(call)) workspace = bounded_multiply(ranks, count - count / ranks * (ranks - 1));
  transfer_use(call, &transfer, 1, bounded_multiply(count, 4), TRANSFER_WRITES);
  transfer_use(call, &transfer, 3, bounded_multiply(workspace, 4), TRANSFER_WORKS_IN);
  if (is_on_device(call)) add_shards(call, 3, 3, count / ranks, count - count / ranks * (ranks - 1));
  return transfer_start(call, &transfer);
}

/* ---- Shards ---- */

/* The bytes of `ranks` shards of argument `which` floats, the last one of the argument after it. */
static int64_t shard_bytes(const struct call *call, int64_t ranks, int which) {
  int64_t shards = ranks > 0 ? bounded_multiply(ranks - 1, external_max(call, which)) : 0;
  return bounded_multiply(bounded_add(shards, external_max(call, which + 1)), 4);
}

static struct value start_shards(const struct call *call, bool arrives_apart) {
  struct transfer transfer = {.node = call->node, .queue = TRANSFER_SUM};
  int sizes = arrives_apart ? 4 : 3;
  transfer_use(call, &transfer, 1, shard_bytes(call, external_ranks_along(call), sizes), TRANSFER_READS);
  transfer_use(call, &transfer, 2, shard_bytes(call, 1, sizes), TRANSFER_WRITES);
  if (arrives_apart) transfer_use(call, &transfer, 3, shard_bytes(call, 1, sizes), TRANSFER_WRITES);
  return transfer_start(call, &transfer);
}

/* accel_start_reduce_scatter(axis, values, own, shard_size, last) */
static struct value start_reduce_scatter(const struct call *call) {
  return start_shards(call, false);
}

/* accel_start_reduce_scatter_onto(axis, values, own, arriving, shard_size, last) */
static struct value start_reduce_scatter_onto(const struct call *call) {
  return start_shards(call, true);
}

/* accel_start_reduce_scatter_by_tree(axis, values, own, shard_size, last, workspace) */
static struct value start_reduce_scatter_by_tree(const struct call *call) {
  struct transfer transfer = {.node = call->node, .queue = TRANSFER_SUM};
  int64_t ranks = external_ranks_along(call), workspace = shard_bytes(call, ranks / 2, 3);
  if (is_on_device(call)) workspace = bounded_multiply(ranks, shard_bytes(call, 1, 3));
  transfer_use(call, &transfer, 1, shard_bytes(call, ranks, 3), is_on_device(call) ? TRANSFER_READS : TRANSFER_WRITES);
  transfer_use(call, &transfer, 2, shard_bytes(call, 1, 3), TRANSFER_WRITES);
  transfer_use(call, &transfer, 5, workspace, TRANSFER_WORKS_IN);
  if (is_on_device(call)) add_shards(call, 2, 5, external_max(call, 3), external_max(call, 4));
  return transfer_start(call, &transfer);
}

/* accel_gpu_start_reduce_scatter(axis, dtype, values, own, count) */
static struct value start_typed_reduce_scatter(const struct call *call) {
  struct transfer transfer = {.node = call->node, .queue = TRANSFER_SUM};
  int64_t bytes = bounded_multiply(external_max(call, 4), type_size(call, 1));
  transfer_use(call, &transfer, 2, bounded_multiply(external_ranks_along(call), bytes), TRANSFER_READS);
  transfer_use(call, &transfer, 3, bytes, TRANSFER_WRITES);
  return transfer_start(call, &transfer);
}

/* ---- Gathers ---- */

/* accel_start_all_gather(axis, values, shard_size, last) */
static struct value start_gather(const struct call *call) {
  struct transfer transfer = {.node = call->node, .queue = TRANSFER_GATHER};
  transfer_use(call, &transfer, 1, shard_bytes(call, external_ranks_along(call), 2), TRANSFER_WRITES);
  return transfer_start(call, &transfer);
}

/* accel_start_all_gather_from(axis, own, values, shard_size, last) */
static struct value start_gather_from(const struct call *call) {
  struct transfer transfer = {.node = call->node, .queue = TRANSFER_GATHER};
  transfer_use(call, &transfer, 1, shard_bytes(call, 1, 3), TRANSFER_READS);
  transfer_use(call, &transfer, 2, shard_bytes(call, external_ranks_along(call), 3), TRANSFER_WRITES);
  return transfer_start(call, &transfer);
}

/* accel_gpu_start_all_gather(axis, dtype, own, all, count) */
static struct value start_typed_gather(const struct call *call) {
  struct transfer transfer = {.node = call->node, .queue = TRANSFER_GATHER};
  int64_t bytes = bounded_multiply(external_max(call, 4), type_size(call, 1));
  transfer_use(call, &transfer, 2, bytes, TRANSFER_READS);
  transfer_use(call, &transfer, 3, bounded_multiply(external_ranks_along(call), bytes), TRANSFER_WRITES);
  return transfer_start(call, &transfer);
}

/* accel_start_read(first, values, bytes): a gather from a file. */
static struct value start_read(const struct call *call) {
  struct transfer transfer = {.node = call->node, .queue = TRANSFER_GATHER};
  if (external_max(call, 2) == 0) return value_number(0);
  transfer_use(call, &transfer, 1, external_max(call, 2), TRANSFER_WRITES);
  return transfer_start(call, &transfer);
}

/* Of a record, accel_start_load(state, first, values, bytes) and accel_start_store(...): within what the state has in
 * the file. */
static void check_on_disk(const struct call *call) {
  struct interp *interp = call->interp;
  const struct value state = call->arguments[0], first = call->arguments[1];
  const int64_t stored = external_disk_bytes(interp, state);
  if (stored >= 0 && first.kind == VALUE_INTEGER && first.low >= 0 &&
      bounded_add(first.high, external_max(call, 3)) <= stored)
    return;
  const bool certain = stored >= 0 && value_is_one(first);
  interp_fail(interp, FAILURE_BOUNDS, certain ? VERDICT_BROKEN : VERDICT_CANNOT_TELL, call->node, call->imprecision,
              "%s goes past the %lld bytes that the state has on the disk", call->node->function->name,
              (long long)(stored < 0 ? 0 : stored));
}

static struct value start_disk(const struct call *call, enum transfer_use use) {
  struct transfer transfer = {.node = call->node, .queue = TRANSFER_DISK};
  check_on_disk(call);
  transfer_use(call, &transfer, 2, external_max(call, 3), use);
  return transfer_start(call, &transfer);
}

static struct value start_load(const struct call *call) {
  return start_disk(call, TRANSFER_WRITES);
}

static struct value start_store(const struct call *call) {
  return start_disk(call, TRANSFER_READS);
}

/* accel_start_load_layer(first, values, bytes) and accel_start_store_layer(...): of a layer that the tables have. */
static struct value start_layer(const struct call *call, enum transfer_use use) {
  struct transfer transfer = {.node = call->node, .queue = TRANSFER_DISK};
  if (external_max(call, 2) == 0) return value_number(0);
  transfer_use(call, &transfer, 1, external_max(call, 2), use);
  return transfer_start(call, &transfer);
}

static struct value start_load_layer(const struct call *call) {
  return start_layer(call, TRANSFER_WRITES);
}

static struct value start_store_layer(const struct call *call) {
  return start_layer(call, TRANSFER_READS);
}

/* accel_gpu_prefetch(to, from, bytes) */
static struct value start_prefetch(const struct call *call) {
  struct transfer transfer = {.node = call->node, .queue = TRANSFER_PREFETCH};
  if (external_max(call, 2) == 0) return value_number(0);
  transfer_use(call, &transfer, 0, external_max(call, 2), TRANSFER_WRITES);
  transfer_use(call, &transfer, 1, external_max(call, 2), TRANSFER_READS);
  return transfer_start(call, &transfer);
}

/* accel_gpu_prefetch_read(to, first, bytes) */
static struct value start_prefetch_read(const struct call *call) {
  struct transfer transfer = {.node = call->node, .queue = TRANSFER_PREFETCH};
  if (external_max(call, 2) == 0) return value_number(0);
  transfer_use(call, &transfer, 0, external_max(call, 2), TRANSFER_WRITES);
  return transfer_start(call, &transfer);
}

/* accel_start_send(axis, to, values, bytes) */
static struct value start_send(const struct call *call) {
  struct transfer transfer = {.node = call->node, .queue = TRANSFER_SEND};
  transfer_use(call, &transfer, 2, external_max(call, 3), TRANSFER_READS);
  return transfer_start(call, &transfer);
}

/* ---- All ---- */

static const struct {
  const char *function;
  transfer_model *model;
} models[] = {
    {"accel_start_all_reduce", start_float32_sum},
    {"accel_start_all_reduce_as", start_sum_as},
    {"accel_start_all_reduce_chained", start_chained},
    {"accel_start_all_reduce_by_tree", start_sum_by_tree},
    {"accel_start_reduce_scatter", start_reduce_scatter},
    {"accel_start_reduce_scatter_onto", start_reduce_scatter_onto},
    {"accel_start_reduce_scatter_by_tree", start_reduce_scatter_by_tree},
    {"accel_start_all_gather", start_gather},
    {"accel_start_all_gather_from", start_gather_from},
    {"accel_start_read", start_read},
    {"accel_start_load", start_load},
    {"accel_start_store", start_store},
    {"accel_start_load_layer", start_load_layer},
    {"accel_start_store_layer", start_store_layer},
    {"accel_start_send", start_send},
    {"accel_gpu_start_all_reduce", start_typed_sum},
    {"accel_gpu_start_all_reduce_doubles", start_double_sum},
    {"accel_gpu_start_all_reduce_largest", start_double_sum},
    {"accel_gpu_start_reduce_scatter", start_typed_reduce_scatter},
    {"accel_gpu_start_all_gather", start_typed_gather},
    {"accel_gpu_prefetch", start_prefetch},
    {"accel_gpu_prefetch_read", start_prefetch_read},
};

transfer_model *transfer_start_model(const char *function) {
  for (size_t i = 0; i < sizeof models / sizeof models[0]; i++)
    if (strcmp(models[i].function, function) == 0) return models[i].model;
  return NULL;
}
