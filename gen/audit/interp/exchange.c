/* Calls of functions that exchange with other ranks: what each does to memory, and that it is a collective. */
#include <string.h>

#include "gen/audit/interp/external.h"

int64_t external_ranks(const struct interp *interp, struct value axis) {
  if (interp->config == NULL || !value_is_one(axis) || axis.low < 0) return VALUE_MAX;
  int64_t ranks = external_member(interp, interp->config, "mesh", axis.low);
  return ranks > 1 ? ranks : 1;
}

int64_t external_ranks_along(const struct call *call) {
  return external_ranks(call->interp, call->arguments[0]);
}

/* values[] of argument 1 become their sum over ranks: `count` of argument 2, of `size` bytes each. */
static struct value sum_over_ranks(const struct call *call, int64_t size) {
  int64_t bytes = bounded_multiply(external_max(call, 2), size);
  interp_collective(call->interp, call->node, call->arguments, call->count);
  external_touch(call, 1, bytes, false);
  external_touch(call, 1, bytes, true);
  return value_number(0);
}

static struct value sum_eight_bytes(const struct call *call) {
  return sum_over_ranks(call, 8);
}

/* What is passed by the name of an array, or of a parameter with an extent, is meant as a whole. */
static void require_whole(const struct call *call, int which, int64_t bytes) {
  if (which >= call->count) return;
  const struct syntax *at = call->node->parts[which + 1];
  while (at->kind == SYNTAX_CAST) at = at->parts[0];
  const struct type *type = at->kind == SYNTAX_VARIABLE ? at->variable->type : &type_void;
  if (type->kind != TYPE_ARRAY || bytes >= bounded_multiply(type->count, type->element->size)) return;
  interp_fail(call->interp, FAILURE_PARTIAL, VERDICT_BROKEN, call->node, 0,
              "%s takes %lld bytes of '%s', which has %lld", call->node->function->name, (long long)bytes,
              at->variable->name, (long long)(type->count * type->element->size));
}

/* The sum over ranks of x, argument 1, becomes y, argument 2, which may be x as a whole: `count` of argument 3. */
static struct value sum_into(const struct call *call, int64_t size) {
  int64_t bytes = bounded_multiply(external_max(call, 3), size);
  interp_collective(call->interp, call->node, call->arguments, call->count);
  external_touch(call, 1, bytes, false);
  external_touch(call, 2, bytes, true);
  require_whole(call, 1, bytes);
  require_whole(call, 2, bytes);
  interp_require_in_place(call->interp, call->node, call->node->function->name, call->arguments[2], call->arguments[1]);
  return value_number(0);
}

static struct value sum_float32_into(const struct call *call) {
  return sum_into(call, 4);
}

static struct value sum_16_bits_into(const struct call *call) {
  return sum_into(call, 2);
}

/* Parts of `size` bytes an element, of argument `outer` times the argument after it, become the whole on all ranks, or
 * wholes become a part of their sum, with space for a whole. */
static struct value exchange_parts(const struct call *call, int part, int whole, int work, int outer, int64_t size) {
  struct interp *interp = call->interp;
  int64_t bytes = bounded_multiply(bounded_multiply(external_max(call, outer), external_max(call, outer + 1)), size);
  int64_t all = bounded_multiply(bytes, external_ranks_along(call));
  interp_collective(interp, call->node, call->arguments, call->count);
  external_touch(call, part, bytes, part == 2);
  external_touch(call, whole, all, whole == 2);
  require_whole(call, part, bytes);
  require_whole(call, whole, all);
  if (work > 0) external_touch(call, work, all, true);
  interp_require_noalias(interp, call->node, call->node->function->name, call->arguments[2], call->arguments[1]);
  return value_number(0);
}

static struct value gather_float32(const struct call *call) {
  return exchange_parts(call, 1, 2, 0, 3, 4);
}

static struct value gather_16_bits(const struct call *call) {
  return exchange_parts(call, 1, 2, 0, 3, 2);
}

static struct value scatter_float32(const struct call *call) {
  return exchange_parts(call, 2, 1, 3, 4, 4);
}

static struct value scatter_16_bits(const struct call *call) {
  return exchange_parts(call, 2, 1, 3, 4, 2);
}

/* x, argument 1, and y, argument 2, have argument 3 bytes for each rank along argument 0; they do not overlap. */
static struct value exchange_all(const struct call *call) {
  const int64_t bytes = bounded_multiply(external_max(call, 3), external_ranks_along(call));
  interp_collective(call->interp, call->node, call->arguments, call->count);
  external_touch(call, 1, bytes, false);
  external_touch(call, 2, bytes, true);
  require_whole(call, 1, bytes);
  require_whole(call, 2, bytes);
  external_require_noalias(call, 2, 1);
  return value_number(0);
}

/* What it holds then depends on data. */
static void fill_starts(const struct call *call, int which, int64_t count) {
  int64_t bytes = bounded_multiply(count, 4);
  external_touch(call, which, bytes, true);
  require_whole(call, which, bytes);
}

/* Where a rank's groups start among the rows of all ranks: the runtime ends the process where starts do not ascend. */
static void set_own_starts(const struct call *call, int64_t count, int64_t rows) {
  struct value own = call->arguments[2];
  bool fits = own.kind == VALUE_POINTER && own.object >= 0 && own.low >= 0 && count * 4 <= own.slot_size - own.high;
  if (!fits || rows > INT32_MAX) return;
  interp_set_content(call->interp, own, count * 4,
                     (struct content){true, false, 0, rows, interp_starts_up_to(call->interp, rows)});
}

/* accel_exchange_starts(axis, starts, own, all, groups, rows) */
static struct value exchange_starts(const struct call *call) {
  int64_t ranks = external_ranks_along(call), groups = external_max(call, 4);
  interp_collective(call->interp, call->node, call->arguments, call->count);
  external_touch(call, 1, bounded_multiply(bounded_add(groups, 1), 4), false);
  require_whole(call, 1, bounded_multiply(bounded_add(groups, 1), 4));
  fill_starts(call, 2, groups / ranks + 1);
  fill_starts(call, 3, bounded_multiply(ranks, bounded_add(groups, 1)));
  set_own_starts(call, groups / ranks + 1, bounded_multiply(ranks, external_max(call, 5)));
  return value_number(0);
}

/* accel_dispatch_rows(axis, x, y, all, groups, rows, width), and back: what has the rows of all ranks is `wide`. */
static struct value move_rows(const struct call *call, int wide) {
  int64_t ranks = external_ranks_along(call), groups = external_max(call, 4);
  int64_t bytes = bounded_multiply(external_max(call, 5), external_max(call, 6));
  int64_t table = bounded_multiply(bounded_multiply(ranks, bounded_add(groups, 1)), 4);
  interp_collective(call->interp, call->node, call->arguments, call->count);
  for (int which = 1; which <= 2; which++) {
    int64_t own = which == wide ? bounded_multiply(ranks, bytes) : bytes;
    external_touch(call, which, own, which == 2);
    require_whole(call, which, own);
  }
  external_touch(call, 3, table, false);
  require_whole(call, 3, table);
  external_require_noalias(call, 2, 1);
  external_require_noalias(call, 2, 3);
  return value_number(0);
}

static struct value dispatch_rows(const struct call *call) {
  return move_rows(call, 2);
}

static struct value collect_rows(const struct call *call) {
  return move_rows(call, 1);
}

/* Data sent to another stage, received from it, or added up with its own. */
static struct value send_bytes(const struct call *call) {
  interp_collective(call->interp, call->node, call->arguments, call->count);
  external_touch(call, 2, external_max(call, 3), false);
  external_end_sends(call);
  return value_number(0);
}

static struct value take_bytes(const struct call *call) {
  interp_collective(call->interp, call->node, call->arguments, call->count);
  external_touch(call, 2, external_max(call, 3), true);
  return value_number(0);
}

static struct value receive_bytes(const struct call *call) {
  struct value result = take_bytes(call);
  external_end_sends(call);
  return result;
}

/* accel_send_receive(axis, to, x, from, y, bytes) */
static struct value send_receive(const struct call *call) {
  interp_collective(call->interp, call->node, call->arguments, call->count);
  interp_ring(call->interp, call->node, call->arguments, call->count);
  external_touch(call, 2, external_max(call, 5), false);
  external_touch(call, 4, external_max(call, 5), true);
  return value_number(0);
}

static struct value add_other(const struct call *call) {
  interp_collective(call->interp, call->node, call->arguments, call->count);
  int64_t count = external_max(call, 3), bytes = count > VALUE_MAX / 4 ? VALUE_MAX : count * 4;
  external_touch(call, 2, bytes, false);
  external_touch(call, 2, bytes, true);
  return value_number(0);
}

static const struct {
  const char *name;
  struct value (*run)(const struct call *call);
} models[] = {
    {"accel_send", send_bytes},
    {"accel_receive", receive_bytes},
    {"accel_take", take_bytes},
    {"accel_add_other", add_other},
    {"accel_send_receive", send_receive},
    {"accel_all_reduce_from", sum_float32_into},
    {"accel_all_reduce_bfloat16_from", sum_16_bits_into},
    {"accel_all_reduce_float16_from", sum_16_bits_into},
    {"accel_all_gather_parts", gather_float32},
    {"accel_all_gather_bfloat16_parts", gather_16_bits},
    {"accel_all_gather_float16_parts", gather_16_bits},
    {"accel_reduce_scatter_parts", scatter_float32},
    {"accel_reduce_scatter_bfloat16_parts", scatter_16_bits},
    {"accel_reduce_scatter_float16_parts", scatter_16_bits},
    {"accel_all_to_all", exchange_all},
    {"accel_exchange_starts", exchange_starts},
    {"accel_dispatch_rows", dispatch_rows},
    {"accel_collect_rows", collect_rows},
    {"accel_all_reduce_counts", sum_eight_bytes},
    {"accel_all_reduce_doubles", sum_eight_bytes},
    {"accel_all_reduce_largest", sum_eight_bytes},
};

bool interp_exchange_external(const struct call *call, struct value *result) {
  for (size_t i = 0; i < sizeof models / sizeof models[0]; i++) {
    if (strcmp(models[i].name, call->node->function->name) != 0) continue;
    *result = models[i].run(call);
    return true;
  }
  return false;
}
