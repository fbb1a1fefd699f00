/* Races with collectives in flight: an access to what one of them writes, or a write to what one reads. */
#include "gen/audit/interp/interp.h"

static struct value memory_at(const struct transfer_memory *memory) {
  return (struct value){.kind = VALUE_POINTER, .object = memory->object, .path = memory->path};
}

static bool overlaps(const struct transfer_memory *memory, int64_t from, int64_t to) {
  return from < memory->to && to > memory->from;
}

/* ---- Accesses ---- */

/* Whether a location has been reported already, and nothing is gained by another finding there. */
static bool is_reported(const struct interp *interp, struct location where, enum verdict verdict) {
  for (int i = 0; i < interp->failures.count; i++) {
    const struct failure *failure = &interp->failures.items[i];
    bool here = failure->kind == FAILURE_TRANSFER && failure->where.file == where.file &&
                failure->where.line == where.line && failure->where.column == where.column;
    if (here && (failure->verdict == VERDICT_BROKEN || failure->verdict == verdict)) return true;
  }
  return false;
}

/* Whether an access certainly touches what a collective uses. A pointer that is exact but for the rank takes both ends
 * of its range. */
static bool is_certain(const struct interp *interp, const struct transfer_memory *memory, struct value at, int64_t from,
                       int64_t to) {
  int64_t width = at.base_width + at.high - at.low;
  bool at_an_end = width == 0 || overlaps(memory, from, to - width) || overlaps(memory, from + width, to);
  return memory->exact && at_an_end && interp_imprecision(interp, at) == 0;
}

static void report_race(struct interp *interp, const struct transfer *item, const struct transfer_memory *memory,
                        struct value at, int64_t from, int64_t to, bool is_write, const struct syntax *node) {
  enum verdict verdict = is_certain(interp, memory, at, from, to) ? VERDICT_BROKEN : VERDICT_CANNOT_TELL;
  if (is_reported(interp, node->where, verdict)) return;
  int64_t first = from > memory->from ? from : memory->from, last = (to < memory->to ? to : memory->to) - 1;
  const char *is = verdict == VERDICT_BROKEN ? "are" : "may be";
  interp_fail(interp, FAILURE_TRANSFER, verdict, node, interp_imprecision(interp, at),
              "bytes %lld to %lld of %s %s %s while %s of line %d %s %s", (long long)(first - at.base),
              (long long)(last - at.base), interp_slot_name(interp, at), is, is_write ? "written" : "read",
              item->node->function->name, item->node->where.line, memory->use == TRANSFER_READS ? "reads" : "writes",
              interp_slot_name(interp, memory_at(memory)));
}

void interp_check_race(struct interp *interp, struct value at, int64_t from, int64_t to, bool is_write,
                       const struct syntax *node) {
  const struct transfer *found = NULL;
  const struct transfer_memory *where = NULL;
  if (interp->in_flight.newest == NULL || interp->starts_transfer) return;
  interp->n_concurrent++;
  for (const struct transfer *item = interp->in_flight.newest; item != NULL; item = item->older)
    for (int i = 0; i < item->n_memory; i++) {
      const struct transfer_memory *memory = &item->memory[i];
      bool conflicts = is_write || memory->use != TRANSFER_READS;
      if (!conflicts || memory->object != at.object || !overlaps(memory, from, to)) continue;
      if (found != NULL && !is_certain(interp, memory, at, from, to)) continue;
      found = item;
      where = memory;
    }
  if (found != NULL) report_race(interp, found, where, at, from, to, is_write, node);
}

/* ---- Paths that join ---- */

/* What one of two paths lacks, for messages. */
static const char *spell_difference(struct interp *interp, const struct transfer *other) {
  if (other == NULL) return "a sum";
  return arena_printf(interp->memory, "%s of line %d", other->node->function->name, other->node->where.line);
}

static void fail_at(struct interp *interp, struct location where, enum verdict verdict, const char *message) {
  struct syntax node = {.where = where};
  interp_fail(interp, FAILURE_TRANSFER, verdict, &node, 0, "%s", message);
}

void interp_agree(struct interp *interp, const struct in_flight *other) {
  const struct transfer *lacking;
  if (in_flight_same(&interp->in_flight, other, &lacking)) return;
  struct location where = lacking != NULL ? lacking->node->where : interp->frame->function->where;
  fail_at(interp, where, VERDICT_CANNOT_TELL,
          arena_printf(interp->memory, "%s may be in flight, or not, where two paths of %s join",
                       spell_difference(interp, lacking), interp->frame->function->name));
}

void interp_agree_in_loop(struct interp *interp, const struct syntax *loop, const struct in_flight *before) {
  const struct transfer *lacking;
  if (in_flight_same(&interp->in_flight, before, &lacking)) return;
  bool started = in_flight_count(&interp->in_flight) >= in_flight_count(before);
  fail_at(interp, loop->where, VERDICT_BROKEN,
          arena_printf(interp->memory,
                       started ? "%s is started in an iteration of this loop, and the iteration ends without its wait"
                               : "%s is in flight before an iteration of this loop, and not before the next one",
                       spell_difference(interp, lacking)));
  interp->in_flight = *before; /* reported once */
}

void interp_leave(struct interp *interp, enum flow flow) {
  if (flow != FLOW_BREAK && flow != FLOW_CONTINUE) return;
  interp_agree_with_left(interp);
  interp->has_left = true;
  interp->left_with = interp->in_flight;
}

void interp_agree_with_left(struct interp *interp) {
  if (interp->has_left) interp_agree(interp, &interp->left_with);
}

/* ---- Where nothing may be in flight ---- */

void interp_require_none_in_flight(struct interp *interp, struct location where, const char *what) {
  for (const struct transfer *item = interp->in_flight.newest; item != NULL; item = item->older) {
    const struct transfer_memory *memory = &item->memory[0];
    const char *uses = item->n_memory == 0
                           ? "is in flight"
                           : arena_printf(interp->memory, "%s bytes %lld to %lld of %s",
                                          memory->use == TRANSFER_READS ? "reads" : "writes", (long long)memory->from,
                                          (long long)memory->to - 1, interp->objects[memory->object].name);
    fail_at(interp, where, VERDICT_BROKEN,
            arena_printf(interp->memory, "%s while %s of line %d %s", what, item->node->function->name,
                         item->node->where.line, uses));
  }
  interp->in_flight = (struct in_flight){0};
}

void interp_require_no_locals_in_flight(struct interp *interp, const struct function *function, int first) {
  for (const struct transfer *item = interp->in_flight.newest; item != NULL; item = item->older)
    for (int i = 0; i < item->n_memory; i++)
      if (item->memory[i].object >= first && interp->objects[item->memory[i].object].kind != OBJECT_STATIC)
        fail_at(interp, item->node->where, VERDICT_BROKEN,
                arena_printf(interp->memory, "%s ends while this is in flight, of its own variable %s", function->name,
                             interp_slot_name(interp, memory_at(&item->memory[i]))));
}
