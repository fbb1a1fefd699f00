/* Collectives that a program starts and waits for later: what each uses while it is in flight, and which calls wait for
 * it. The memory counts as read and written at the start; accesses before the wait are races (interp_race.c). */
#include <string.h>

#include "gen/audit/externals.h"
#include "gen/audit/interp_external.h"

static bool is_one(struct value value) {
  return value.kind == VALUE_INTEGER && value.low == value.high;
}

static bool is_on_device(const struct call *call) {
  return call->interp->device != NULL;
}

/* ---- Starts ---- */

/* Scalars of a record that follow each other, all of one type, are one array to a collective. */
static void include_neighbours(struct value *at) {
  const struct path *path = at->path;
  if (at->kind != VALUE_POINTER || path == NULL || path->record == NULL || path->record->is_union) return;
  const struct type *type = path->record->members[path->member].type;
  if (type->kind != TYPE_REAL && type->kind != TYPE_INTEGER) return;
  int64_t end = path->record->members[path->member].offset + type->size;
  for (int i = path->member + 1; i < path->record->n_members; i++) {
    const struct member *next = &path->record->members[i];
    if (next->offset != end || next->type->kind != type->kind || next->type->size != type->size) return;
    at->slot_size += type->size;
    end += type->size;
  }
}

/* What a collective uses: argument `which`, and `bytes` from there. What it both reads and writes counts as written, as
 * a part of it may belong to no tensor, and be summed all the same. */
static void use(const struct call *call, struct transfer *transfer, int which, int64_t bytes, enum transfer_use use) {
  struct interp *interp = call->interp;
  struct value *arguments = arena_alloc(interp->memory, ((size_t)call->count + SPARE_ARGUMENTS) * sizeof *arguments);
  struct call wide = *call;
  memcpy(arguments, call->arguments, (size_t)call->count * sizeof *arguments);
  include_neighbours(&arguments[which]);
  wide.arguments = arguments;
  struct value at = arguments[which];
  external_touch(&wide, which, bytes, use != TRANSFER_READS);
  if (bytes <= 0) return;
  if (at.kind != VALUE_POINTER || at.object < 0) {
    interp_fail(interp, FAILURE_TRANSFER, VERDICT_CANNOT_TELL, call->node, 0, "what argument %d of %s is, is not known",
                which + 1, call->node->function->name);
    return;
  }
  bool exact = at.base_width == 0 && at.low == at.high && interp_imprecision(interp, at) == 0 && call->imprecision == 0;
  transfer->memory[transfer->n_memory++] =
      (struct transfer_memory){.object = at.object,
                               .path = at.path,
                               .from = bounded_add(at.base, at.low),
                               .to = bounded_add(bounded_add(at.base + at.base_width, at.high), bytes),
                               .use = use,
                               .exact = exact};
}

/* Whether a collective that is being started waits for `item` before it touches what both use. */
static bool is_ordered_after(const struct transfer *started, const struct transfer_memory *memory,
                             const struct transfer *item, const struct transfer_memory *other,
                             const struct transfer *sum) {
  if (memory->use == TRANSFER_WORKS_IN && other->use == TRANSFER_WORKS_IN) return started->queue == item->queue;
  bool of_this_sum = item == sum || (item->queue == TRANSFER_CHAINED && sum != NULL && item->number > sum->number);
  return started->queue == TRANSFER_CHAINED && of_this_sum;
}

/* The sum that was started last; NULL: it has ended. */
static const struct transfer *last_sum(const struct in_flight *list) {
  for (const struct transfer *item = list->newest; item != NULL; item = item->older)
    if (item->queue == TRANSFER_SUM) return item->number == list->sums - 1 ? item : NULL;
  return NULL;
}

static void report_overlap(const struct call *call, const struct transfer_memory *memory, const struct transfer *item,
                           const struct transfer_memory *other) {
  int64_t from = memory->from > other->from ? memory->from : other->from;
  int64_t to = memory->to < other->to ? memory->to : other->to;
  bool certain = memory->exact && other->exact, reads = memory->use == TRANSFER_READS;
  struct value slot = {.kind = VALUE_POINTER, .object = memory->object, .path = memory->path};
  const char *verb = certain ? (reads ? "reads" : "writes") : (reads ? "may read" : "may write");
  interp_fail(call->interp, FAILURE_TRANSFER, certain ? VERDICT_BROKEN : VERDICT_CANNOT_TELL, call->node, 0,
              "%s %s bytes %lld to %lld of the %s, in %s, while %s of line %d %s them", call->node->function->name,
              verb, (long long)from, (long long)to - 1, call->interp->objects[memory->object].name,
              interp_slot_name(call->interp, slot), item->node->function->name, item->node->where.line,
              other->use == TRANSFER_READS ? "reads" : "writes");
}

static bool conflict(const struct transfer_memory *memory, const struct transfer_memory *other) {
  return memory->object == other->object && memory->from < other->to && other->from < memory->to &&
         (memory->use != TRANSFER_READS || other->use != TRANSFER_READS);
}

/* No two arguments of a collective may share bytes that it writes. */
static void check_own_overlaps(const struct call *call, const struct transfer *transfer) {
  for (int i = 1; i < transfer->n_memory; i++)
    for (int j = 0; j < i; j++)
      if (conflict(&transfer->memory[i], &transfer->memory[j]))
        report_overlap(call, &transfer->memory[i], transfer, &transfer->memory[j]);
}

/* Collectives of one GPU run in the order of their start, in one stream. */
static void check_overlaps(const struct call *call, const struct transfer *transfer) {
  const struct in_flight *list = &call->interp->in_flight;
  const struct transfer *sum = last_sum(list);
  if (is_on_device(call)) return;
  check_own_overlaps(call, transfer);
  for (const struct transfer *item = list->newest; item != NULL; item = item->older)
    for (int i = 0; i < transfer->n_memory * item->n_memory; i++) {
      const struct transfer_memory *memory = &transfer->memory[i % transfer->n_memory];
      const struct transfer_memory *other = &item->memory[i / transfer->n_memory];
      if (conflict(memory, other) && !is_ordered_after(transfer, memory, item, other, sum))
        report_overlap(call, memory, item, other);
    }
}

/* Starts and waits are known in their order only where each iteration of the loops around them is followed. */
static void require_order(const struct call *call) {
  if (call->interp->n_loops == 0) return;
  interp_fail(call->interp, FAILURE_TRANSFER, VERDICT_CANNOT_TELL, call->node, 0,
              "%s is in a loop whose iterations are not followed one by one", call->node->function->name);
}

static struct value start(const struct call *call, const struct transfer *transfer) {
  struct interp *interp = call->interp;
  require_order(call);
  check_overlaps(call, transfer);
  if (transfer->queue == TRANSFER_CHAINED && interp->in_flight.sums == 0)
    interp_fail(interp, FAILURE_TRANSFER, VERDICT_BROKEN, call->node, 0, "%s follows no sum: none has been started",
                call->node->function->name);
  in_flight_start(interp->memory, &interp->in_flight, *transfer);
  int count = in_flight_count(&interp->in_flight);
  if (count > interp->most_in_flight) interp->most_in_flight = count;
  interp->n_starts++;
  return value_number(0);
}

/* ---- Sums ---- */

static struct value start_sum(const struct call *call, enum transfer_queue queue, int values, int64_t size) {
  struct transfer transfer = {.node = call->node, .queue = queue};
  use(call, &transfer, values, bounded_multiply(external_max(call, values + 1), size), TRANSFER_WRITES);
  return start(call, &transfer);
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
  bool known = is_one(dtype) && dtype.low >= 0 && dtype.low < (int64_t)(sizeof sizes / sizeof sizes[0]);
  return known ? sizes[dtype.low] : VALUE_MAX;
}

static struct value start_typed_sum(const struct call *call) {
  return start_sum(call, TRANSFER_SUM, 2, type_size(call, 1));
}

/* accel_start_all_reduce_as(axis, dtype, values, wire, count) */
static struct value start_sum_as(const struct call *call) {
  struct transfer transfer = {.node = call->node, .queue = TRANSFER_SUM};
  int64_t count = external_max(call, 4);
  use(call, &transfer, 2, bounded_multiply(count, 4), TRANSFER_WRITES);
  use(call, &transfer, 3, bounded_multiply(count, 2), TRANSFER_WRITES);
  return start(call, &transfer);
}

/* accel_start_all_reduce_by_tree(axis, values, count, workspace), of a GPU with another argument. */
static struct value start_sum_by_tree(const struct call *call) {
  struct transfer transfer = {.node = call->node, .queue = TRANSFER_SUM};
  int64_t count = external_max(call, 2), ranks = external_ranks_along(call), workspace = bounded_add(count, 1) / 2;
  if (is_on_device(call)) workspace = bounded_multiply(ranks, count - count / ranks * (ranks - 1));
  use(call, &transfer, 1, bounded_multiply(count, 4), TRANSFER_WRITES);
  use(call, &transfer, 3, bounded_multiply(workspace, 4), TRANSFER_WORKS_IN);
  return start(call, &transfer);
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
  use(call, &transfer, 1, shard_bytes(call, external_ranks_along(call), sizes), TRANSFER_READS);
  use(call, &transfer, 2, shard_bytes(call, 1, sizes), TRANSFER_WRITES);
  if (arrives_apart) use(call, &transfer, 3, shard_bytes(call, 1, sizes), TRANSFER_WRITES);
  return start(call, &transfer);
}

/* accel_start_reduce_scatter(axis, values, own, shard_size, last) */
static struct value start_reduce_scatter(const struct call *call) {
  return start_shards(call, false);
}

/* accel_start_reduce_scatter_onto(axis, values, own, arriving, shard_size, last) */
static struct value start_reduce_scatter_onto(const struct call *call) {
  return start_shards(call, true);
}

/* accel_start_reduce_scatter_by_tree(axis, values, own, shard_size, last, workspace), of a GPU with another argument.
 */
static struct value start_reduce_scatter_by_tree(const struct call *call) {
  struct transfer transfer = {.node = call->node, .queue = TRANSFER_SUM};
  int64_t ranks = external_ranks_along(call), workspace = shard_bytes(call, ranks / 2, 3);
  if (is_on_device(call)) workspace = bounded_multiply(ranks, shard_bytes(call, 1, 3));
  use(call, &transfer, 1, shard_bytes(call, ranks, 3), is_on_device(call) ? TRANSFER_READS : TRANSFER_WRITES);
  use(call, &transfer, 2, shard_bytes(call, 1, 3), TRANSFER_WRITES);
  use(call, &transfer, 5, workspace, TRANSFER_WORKS_IN);
  return start(call, &transfer);
}

/* accel_gpu_start_reduce_scatter(axis, dtype, values, own, count) */
static struct value start_typed_reduce_scatter(const struct call *call) {
  struct transfer transfer = {.node = call->node, .queue = TRANSFER_SUM};
  int64_t bytes = bounded_multiply(external_max(call, 4), type_size(call, 1));
  use(call, &transfer, 2, bounded_multiply(external_ranks_along(call), bytes), TRANSFER_READS);
  use(call, &transfer, 3, bytes, TRANSFER_WRITES);
  return start(call, &transfer);
}

/* ---- Gathers ---- */

/* accel_start_all_gather(axis, values, shard_size, last) */
static struct value start_gather(const struct call *call) {
  struct transfer transfer = {.node = call->node, .queue = TRANSFER_GATHER};
  use(call, &transfer, 1, shard_bytes(call, external_ranks_along(call), 2), TRANSFER_WRITES);
  return start(call, &transfer);
}

/* accel_start_all_gather_from(axis, own, values, shard_size, last) */
static struct value start_gather_from(const struct call *call) {
  struct transfer transfer = {.node = call->node, .queue = TRANSFER_GATHER};
  use(call, &transfer, 1, shard_bytes(call, 1, 3), TRANSFER_READS);
  use(call, &transfer, 2, shard_bytes(call, external_ranks_along(call), 3), TRANSFER_WRITES);
  return start(call, &transfer);
}

/* accel_gpu_start_all_gather(axis, dtype, own, all, count) */
static struct value start_typed_gather(const struct call *call) {
  struct transfer transfer = {.node = call->node, .queue = TRANSFER_GATHER};
  int64_t bytes = bounded_multiply(external_max(call, 4), type_size(call, 1));
  use(call, &transfer, 2, bytes, TRANSFER_READS);
  use(call, &transfer, 3, bounded_multiply(external_ranks_along(call), bytes), TRANSFER_WRITES);
  return start(call, &transfer);
}

/* accel_gpu_prefetch(to, from, bytes) */
static struct value start_prefetch(const struct call *call) {
  struct transfer transfer = {.node = call->node, .queue = TRANSFER_PREFETCH};
  use(call, &transfer, 0, external_max(call, 2), TRANSFER_WRITES);
  use(call, &transfer, 1, external_max(call, 2), TRANSFER_READS);
  return start(call, &transfer);
}

/* accel_start_send(axis, to, values, bytes) */
static struct value start_send(const struct call *call) {
  struct transfer transfer = {.node = call->node, .queue = TRANSFER_SEND};
  use(call, &transfer, 2, external_max(call, 3), TRANSFER_READS);
  return start(call, &transfer);
}

/* ---- Waits ---- */

/* What a wait is for: queues, as bits; of sums, the first `sums`; what begins at an address. */
struct awaited {
  unsigned queues;
  int64_t sums;
  const struct value *address;   /* NULL: any */
  const struct transfer *gather; /* the newest one, which began after prefetches before it */
};

static bool is_awaited(const struct transfer *item, const void *with) {
  const struct awaited *awaited = with;
  if (item->queue == TRANSFER_PREFETCH) {
    for (const struct transfer *gather = awaited->gather; gather != NULL; gather = gather->older)
      if (gather == item) return true;
    return false;
  }
  if ((awaited->queues >> item->queue & 1) == 0) return false;
  if (item->queue == TRANSFER_SUM && item->number >= awaited->sums) return false;
  return awaited->address == NULL || (item->n_memory > 0 && item->memory[0].object == awaited->address->object &&
                                      item->memory[0].from == awaited->address->base + awaited->address->low);
}

static int end(const struct call *call, struct awaited awaited) {
  struct interp *interp = call->interp;
  require_order(call);
  for (const struct transfer *item = interp->in_flight.newest; item != NULL && awaited.gather == NULL;
       item = item->older)
    if (item->queue == TRANSFER_GATHER && (awaited.queues >> TRANSFER_GATHER & 1) != 0) awaited.gather = item;
  interp->n_waits++;
  return in_flight_end(interp->memory, &interp->in_flight, is_awaited, &awaited);
}

/* A wait in a loop or a function may have nothing to wait for at times, but not each time. */
static void note_awaited(const struct call *call, bool some) {
  struct note *note = interp_note(call->interp, call->node);
  if (some) note->awaits = 1;
  if (note->awaits == 0) note->awaits = -1;
}

static struct value wait_all(const struct call *call) {
  struct in_flight *list = &call->interp->in_flight;
  unsigned queues = 1u << TRANSFER_SUM | 1u << TRANSFER_CHAINED;
  if (is_on_device(call)) queues |= 1u << TRANSFER_GATHER;
  bool some = list->sums > 0;
  some = end(call, (struct awaited){.queues = queues, .sums = VALUE_MAX}) > 0 || some;
  note_awaited(call, some);
  list->sums = 0;
  return value_number(0);
}

/* accel_wait_reductions(count) */
static struct value wait_first(const struct call *call) {
  struct interp *interp = call->interp;
  struct value count = call->arguments[0];
  if (!is_one(count)) {
    interp_fail(interp, FAILURE_TRANSFER, VERDICT_CANNOT_TELL, call->node, 0, "how many sums %s waits for is not known",
                call->node->function->name);
    return value_number(0);
  }
  if (count.low > interp->in_flight.sums)
    interp_fail(interp, FAILURE_TRANSFER, VERDICT_BROKEN, call->node, 0,
                "%s waits for the first %lld sums, of which %lld have been started", call->node->function->name,
                (long long)count.low, (long long)interp->in_flight.sums);
  end(call, (struct awaited){.queues = 1u << TRANSFER_SUM, .sums = count.low});
  return value_number(0);
}

static struct value wait_gathers(const struct call *call) {
  note_awaited(call, end(call, (struct awaited){.queues = 1u << TRANSFER_GATHER}) > 0);
  return value_number(0);
}

static struct value wait_sends(const struct call *call) {
  note_awaited(call, end(call, (struct awaited){.queues = 1u << TRANSFER_SEND}) > 0);
  return value_number(0);
}

/* accel_wait_send(values), which may be before the first send from there. That it is one address, the lists of stages
 * require. */
static struct value wait_send(const struct call *call) {
  end(call, (struct awaited){.queues = 1u << TRANSFER_SEND, .address = &call->arguments[0]});
  return value_number(0);
}

void external_end_sends(const struct call *call) {
  end(call, (struct awaited){.queues = 1u << TRANSFER_SEND});
}

static struct value advance(const struct call *call) {
  (void)call;
  return value_number(0);
}

/* ---- All ---- */

static const struct {
  const char *name;
  struct value (*run)(const struct call *call);
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
    {"accel_start_send", start_send},
    {"accel_gpu_start_all_reduce", start_typed_sum},
    {"accel_gpu_start_all_reduce_doubles", start_double_sum},
    {"accel_gpu_start_all_reduce_largest", start_double_sum},
    {"accel_gpu_start_all_reduce_by_tree", start_sum_by_tree},
    {"accel_gpu_start_reduce_scatter", start_typed_reduce_scatter},
    {"accel_gpu_start_reduce_scatter_by_tree", start_reduce_scatter_by_tree},
    {"accel_gpu_start_all_gather", start_typed_gather},
    {"accel_gpu_prefetch", start_prefetch},
    {"accel_wait_collectives", wait_all},
    {"accel_wait_reductions", wait_first},
    {"accel_wait_gathers", wait_gathers},
    {"accel_wait_sends", wait_sends},
    {"accel_wait_send", wait_send},
    {"accel_advance_collectives", advance},
};

enum { N_MODELS = sizeof models / sizeof models[0] };

static int model_of(const char *name) {
  for (int i = 0; i < N_MODELS; i++)
    if (strcmp(models[i].name, name) == 0) return i;
  return -1;
}

/* Of another library, what is in flight is not followed. */
static bool is_of_library(const char *name) {
  return strncmp(name, "MPI_I", 5) == 0 || strncmp(name, "nccl", 4) == 0;
}

bool interp_transfer_external(const struct call *call, struct value *result) {
  struct interp *interp = call->interp;
  const char *name = call->node->function->name;
  int model = model_of(name);
  if (is_of_library(name))
    interp_fail(interp, FAILURE_TRANSFER, VERDICT_CANNOT_TELL, call->node, 0,
                "what %s uses until it has ended is not followed", name);
  if (model < 0) return false;
  if (external_effect(name) == EFFECT_COLLECTIVE)
    interp_collective(interp, call->node, call->arguments, call->count);
  else
    interp_note(interp, call->node)->seen = true;
  interp->starts_transfer = true;
  *result = models[model].run(call);
  interp->starts_transfer = false;
  return true;
}

/* ---- The claim ---- */

struct transfer_check {
  struct interp *interp;
  struct claim *claim;
};

static bool is_transfer(const struct syntax *node) {
  return node->kind == SYNTAX_CALL && node->function != NULL && node->function->body == NULL &&
         (model_of(node->function->name) >= 0 || is_of_library(node->function->name));
}

static bool find_transfer(struct syntax *node, void *data) {
  bool *found = data;
  *found = *found || is_transfer(node);
  return !*found;
}

static bool visit_transfer(struct syntax *node, void *data) {
  struct transfer_check *check = data;
  if (!is_transfer(node)) return true;
  claim_fact(check->interp->audit, check->claim, node->where, "%s", node->function->name);
  if (node->note == NULL || !node->note->seen)
    claim_finding(check->interp->audit, check->claim, VERDICT_CANNOT_TELL, node->where,
                  "the arguments of this call of %s are not tracked", node->function->name);
  else if (node->note->awaits < 0)
    claim_finding(check->interp->audit, check->claim, VERDICT_BROKEN, node->where,
                  "%s waits, and nothing that it waits for is ever in flight here", node->function->name);
  return true;
}

void interp_claim_transfers(struct interp *interp) {
  const struct tree *tree = interp->tree;
  bool any = false;
  for (int i = 0; i < tree->n_functions; i++)
    if (tree->functions[i]->role->is_used) syntax_visit(tree->functions[i]->body, find_transfer, &any);
  if (!any) return;
  struct claim *claim = audit_claim(
      interp->audit, "no-race-with-transfers",
      "From the start of a collective to its wait, nothing writes what it reads, and nothing reads or writes what it "
      "writes, another collective included; each wait is for something that was started, an iteration of a loop waits "
      "for what it "
      "starts, and nothing is in flight when a step ends.");
  struct transfer_check check = {.interp = interp, .claim = claim};
  for (int i = 0; i < tree->n_functions; i++)
    if (tree->functions[i]->role->is_used) syntax_visit(tree->functions[i]->body, visit_transfer, &check);
  interp_add_failures(interp, claim, FAILURE_TRANSFER);
  claim_evidence(interp->audit, claim, "%d starts, %d waits, at most %d in flight, %lld accesses meanwhile",
                 interp->n_starts, interp->n_waits, interp->most_in_flight, (long long)interp->n_concurrent);
}
