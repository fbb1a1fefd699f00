/* Collectives that a program starts and waits for later: what is in flight together, and the claim about it. The memory
 * that one uses counts as read and written at its start; accesses before the wait are races (race.c). What
 * each function uses is in transfer_start.c, what waits for it in transfer_wait.c. */
#include "gen/audit/interp/transfer.h"

#include <string.h>

#include "gen/audit/program/externals.h"

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

void transfer_use(const struct call *call, struct transfer *transfer, int which, int64_t bytes, enum transfer_use use) {
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
  if (started->queue == TRANSFER_DISK && item->queue == TRANSFER_DISK) return true;
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
void transfer_require_order(const struct call *call) {
  if (call->interp->n_loops == 0) return;
  interp_fail(call->interp, FAILURE_TRANSFER, VERDICT_CANNOT_TELL, call->node, 0,
              "%s is in a loop whose iterations are not followed one by one", call->node->function->name);
}

struct value transfer_start(const struct call *call, const struct transfer *transfer) {
  struct interp *interp = call->interp;
  transfer_require_order(call);
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

/* ---- Calls ---- */

static transfer_model *model_of(const char *name) {
  transfer_model *model = transfer_start_model(name);
  return model != NULL ? model : transfer_wait_model(name);
}

/* Of another library, what is in flight is not followed. */
static bool is_of_library(const char *name) {
  return strncmp(name, "MPI_I", 5) == 0 || strncmp(name, "nccl", 4) == 0;
}

bool interp_transfer_external(const struct call *call, struct value *result) {
  struct interp *interp = call->interp;
  const char *name = call->node->function->name;
  transfer_model *model = model_of(name);
  if (is_of_library(name))
    interp_fail(interp, FAILURE_TRANSFER, VERDICT_CANNOT_TELL, call->node, 0,
                "what %s uses until it has ended is not followed", name);
  if (model == NULL) return false;
  if (external_effect(name) == EFFECT_COLLECTIVE)
    interp_collective(interp, call->node, call->arguments, call->count);
  else
    interp_note(interp, call->node)->seen = true;
  interp->starts_transfer = true;
  *result = model(call);
  interp->starts_transfer = false;
  return true;
}

/* ---- Loops ---- */

static bool find_order(struct syntax *node, void *data) {
  bool *found = data;
  if (node->kind != SYNTAX_CALL || node->function == NULL) return !*found;
  if (node->function->body == NULL)
    *found = *found || model_of(node->function->name) != NULL;
  else
    *found = *found || interp_reaches_transfer(node->function);
  return !*found;
}

bool interp_has_transfer(struct syntax *node) {
  bool found = false;
  syntax_visit(node, find_order, &found);
  return found;
}

bool interp_reaches_transfer(struct function *function) {
  int *known = &function->role->reaches_transfer;
  if (*known == 0) {
    *known = -1; /* for what calls itself */
    if (interp_has_transfer(function->body)) *known = 1;
  }
  return *known > 0;
}

/* ---- The claim ---- */

struct transfer_check {
  struct interp *interp;
  struct claim *claim;
};

static bool is_transfer(const struct syntax *node) {
  return node->kind == SYNTAX_CALL && node->function != NULL && node->function->body == NULL &&
         (model_of(node->function->name) != NULL || is_of_library(node->function->name));
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
      "From the start of a collective to its wait, nothing writes what it reads, and nothing reads or writes what "
      "it writes, another collective included; each wait is for something that was started, an iteration of a loop "
      "waits for what it starts, and nothing is in flight when a step ends.");
  struct transfer_check check = {.interp = interp, .claim = claim};
  for (int i = 0; i < tree->n_functions; i++)
    if (tree->functions[i]->role->is_used) syntax_visit(tree->functions[i]->body, visit_transfer, &check);
  interp_add_failures(interp, claim, FAILURE_TRANSFER);
  claim_evidence(interp->audit, claim, "%d starts, %d waits, at most %d in flight, %lld accesses meanwhile",
                 interp->n_starts, interp->n_waits, interp->most_in_flight, (long long)interp->n_concurrent);
}
