/* Functions that wait for what is in flight: which of it each ends. */
#include <string.h>

#include "gen/audit/interp/transfer.h"

/* What a wait is for: queues, as bits; of sums, the first `sums`; what begins at an address. */
struct awaited {
  unsigned queues;
  int64_t sums;
  const struct value *address; /* NULL: any */
  int64_t bytes; /* from that address on, of a wait for what uses any of them; 0: of one that begins there */
  const struct transfer *gather; /* the newest one, which began after prefetches before it */
};

/* Of a wait for bytes: whether they are all that a transfer uses. */
static bool is_within(const struct transfer *item, const struct awaited *awaited) {
  const int64_t begin = bounded_add(awaited->address->base, awaited->address->low);
  for (int i = 0; i < item->n_memory; i++)
    if (item->memory[i].object != awaited->address->object || item->memory[i].from < begin ||
        item->memory[i].to > bounded_add(begin, awaited->bytes))
      return false;
  return true;
}

static bool is_awaited(const struct transfer *item, const void *with) {
  const struct awaited *awaited = with;
  if ((awaited->queues >> item->queue & 1) == 0 && item->queue == TRANSFER_PREFETCH) {
    for (const struct transfer *gather = awaited->gather; gather != NULL; gather = gather->older)
      if (gather == item) return true;
    return false;
  }
  if ((awaited->queues >> item->queue & 1) == 0) return false;
  if (item->queue == TRANSFER_SUM && item->number >= awaited->sums) return false;
  if (awaited->bytes > 0) return is_within(item, awaited);
  return awaited->address == NULL || (item->n_memory > 0 && item->memory[0].object == awaited->address->object &&
                                      item->memory[0].from == awaited->address->base + awaited->address->low);
}

static int end(const struct call *call, struct awaited awaited) {
  struct interp *interp = call->interp;
  transfer_require_order(call);
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
  if (call->interp->device != NULL) queues |= 1u << TRANSFER_GATHER;
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
  if (!value_is_one(count)) {
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

static struct value wait_prefetch(const struct call *call) {
  note_awaited(call, end(call, (struct awaited){.queues = 1u << TRANSFER_PREFETCH}) > 0);
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

/* accel_wait_disk(memory, bytes). Without knowing where that is, nothing has ended. */
static struct value wait_disk(const struct call *call) {
  const struct value at = call->arguments[0], bytes = call->arguments[1];
  if (at.kind != VALUE_POINTER || at.object < 0 || at.base_width != 0 || at.low != at.high || !value_is_one(bytes)) {
    interp_fail(call->interp, FAILURE_TRANSFER, VERDICT_CANNOT_TELL, call->node, 0, "what %s waits for is not known",
                call->node->function->name);
    return value_number(0);
  }
  struct awaited awaited = {.queues = 1u << TRANSFER_DISK, .address = &at, .bytes = bytes.low};
  note_awaited(call, end(call, awaited) > 0);
  return value_number(0);
}

void external_end_sends(const struct call *call) {
  end(call, (struct awaited){.queues = 1u << TRANSFER_SEND});
}

static struct value advance(const struct call *call) {
  (void)call;
  return value_number(0);
}

static const struct {
  const char *function;
  transfer_model *model;
} models[] = {
    {"accel_wait_collectives", wait_all},   {"accel_wait_reductions", wait_first},
    {"accel_wait_gathers", wait_gathers},   {"accel_wait_reads", wait_gathers},
    {"accel_wait_sends", wait_sends},       {"accel_wait_send", wait_send},
    {"accel_wait_disk", wait_disk},         {"accel_gpu_wait_prefetch", wait_prefetch},
    {"accel_advance_collectives", advance},
};

transfer_model *transfer_wait_model(const char *function) {
  for (size_t i = 0; i < sizeof models / sizeof models[0]; i++)
    if (strcmp(models[i].function, function) == 0) return models[i].model;
  return NULL;
}
