/* Calls of the device's half that are followed once: what a launch does to the arena follows from its arguments. A
 * later call with the same numbers, and with pointers to slots of the same sizes and contents, does the same to its
 * slots. If anything would fail then, the call is followed like the first one.
 *
 * What a call does depends on nothing else: its key has the arguments, the integers known in their slots, the path
 * condition, the iterations around it, and all that it read of static storage. It does nothing else: what it changes
 * but the arena's bytes and integers, and the marks of what steps set, spoils the record. A failure does, too. */
#include <string.h>

#include "gen/audit/interp/interp.h"
#include "gen/audit/program/externals.h"

enum { MOST_RECORDS = 4 }; /* of calls that are alike */

/* What was read of an object of static storage: what interp_set_once gave, a pointer, or what other numbers of it come
 * from. */
enum reading_kind { READING_ONCE, READING_POINTER, READING_OTHER };
struct static_reading {
  enum reading_kind kind;
  int object;
  struct value value; /* of READING_ONCE and READING_POINTER */
  bool is_set_by_steps;
  unsigned origin;
};

/* Integers that are known in bytes of the arena: others are written to them, or they are of this range from now on. */
struct content_change {
  bool sets;
  int64_t from, to;
  struct content content;
  const struct path *path;
};

/* A call, as far as what it does depends on it. */
struct again {
  const struct function *function;
  const struct value *arguments;
  const struct map_contents *contents; /* by argument: the integers known in its slot */
  uint64_t guards;
  int64_t iterations;
  int depth, height; /* the calls that are open around it, and in it */
  int64_t alignment; /* to which its checks looked at addresses */
  struct {
    struct pending_access *items;
    int count, capacity;
  } accesses; /* to the arena, in order */
  int n_accesses, n_regions, n_listed;
  struct {
    struct content_change *items;
    int count, capacity;
  } changes;    /* in order */
  bool chooses; /* it has arms of which one is taken: the changes are those of both */
  struct {
    struct static_reading *items;
    int count, capacity;
  } readings;
  struct {
    int *items;
    int count, capacity;
  } set; /* objects of static storage, and the arena's, that it marks as set by steps */
};

/* ---- What is being recorded ---- */

void interp_spoil_record(struct interp *interp) {
  interp->is_spoiled = true;
}

void interp_record_access(struct interp *interp, const struct pending_access *access) {
  if (interp->recorded != NULL) ARENA_PUSH(interp->memory, interp->recorded->accesses, *access);
}

static void record_reading(struct interp *interp, struct static_reading reading) {
  if (interp->recorded == NULL) return;
  for (int i = 0; i < interp->recorded->readings.count; i++) {
    const struct static_reading *known = &interp->recorded->readings.items[i];
    if (known->kind == reading.kind && known->object == reading.object) return;
  }
  reading.is_set_by_steps = interp->objects[reading.object].is_set_by_steps;
  ARENA_PUSH(interp->memory, interp->recorded->readings, reading);
}

void interp_record_number(struct interp *interp, int object, struct value value) {
  record_reading(interp, (struct static_reading){.kind = READING_ONCE, .object = object, .value = value});
}

void interp_record_origin(struct interp *interp, int object) {
  const unsigned origin = interp->states[object].value.origin & ORIGIN_RANK;
  record_reading(interp, (struct static_reading){.kind = READING_OTHER, .object = object, .origin = origin});
}

void interp_record_set(struct interp *interp, int object) {
  if (interp->recorded != NULL) ARENA_PUSH(interp->memory, interp->recorded->set, object);
}

void interp_record_choice(struct interp *interp) {
  if (interp->recorded != NULL) interp->recorded->chooses = true;
}

void interp_record_content(struct interp *interp, struct value at, int64_t from, int64_t to, bool sets,
                           struct content content) {
  struct again *again = interp->recorded;
  if (again == NULL || interp->region != NULL) return; /* what a region leaves of them is taken back */
  if (content.grouping != NULL) interp_spoil_record(interp);
  const struct content_change change = {sets, from, to, content, at.path};
  const struct content_change *last = again->changes.count > 0 ? &again->changes.items[again->changes.count - 1] : NULL;
  if (last != NULL && !sets && !last->sets && !content.known && !last->content.known && last->path == at.path &&
      last->from <= from && last->to >= to)
    return;
  ARENA_PUSH(interp->memory, again->changes, change);
}

void interp_record_alignment(struct interp *interp, int64_t alignment) {
  if (interp->recorded != NULL && alignment > interp->recorded->alignment) interp->recorded->alignment = alignment;
}

void interp_record_external(struct interp *interp, const struct syntax *node, const struct value *arguments,
                            int count) {
  const enum effect effect = external_effect(node->function->name);
  if (effect != EFFECT_ARITHMETIC && effect != EFFECT_MEMORY) interp_spoil_record(interp);
  for (int i = 0; i < count; i++)
    if (arguments[i].kind == VALUE_POINTER && arguments[i].object == interp->arena_object) interp_spoil_record(interp);
}

/* ---- Calls that are alike ---- */

static bool points_to_arena(const struct interp *interp, const struct value *value) {
  return value->kind == VALUE_POINTER && value->object == interp->arena_object;
}

/* Whether all that a call can reach through an argument is a slot of the arena. */
static bool is_plain(const struct interp *interp, const struct value *value) {
  if (value->fields != NULL || value->linear != NULL || value->kind == VALUE_NOTHING) return false;
  return value->kind != VALUE_POINTER ||
         (points_to_arena(interp, value) && value->path != NULL && value->base_width == 0 && value->slot_size >= 0);
}

/* But for where a pointer's slot is. */
static bool same_value(const struct value *a, const struct value *b) {
  return a->kind == b->kind && a->origin == b->origin && a->blame == b->blame && a->loops == b->loops &&
         a->low == b->low && a->high == b->high && a->step == b->step && a->is_known == b->is_known &&
         memcmp(&a->real, &b->real, sizeof a->real) == 0 && a->object == b->object && a->slot_size == b->slot_size &&
         a->base_width == b->base_width && a->fields == b->fields && a->linear == b->linear && a->form == b->form;
}

static bool same_but_for_place(const struct value *a, const struct value *b, int64_t alignment) {
  return same_value(a, b) && (a->kind != VALUE_POINTER || (a->base - b->base) % alignment == 0);
}

/* The integers that are known in a slot, by their distance from its start. */
static struct map_contents contents_of(struct interp *interp, struct arena *arena, const struct value *value) {
  struct map_contents found = {0};
  if (!points_to_arena(interp, value)) return found;
  for (int pass = 0; pass < 2; pass++) {
    if (pass == 1) found.items = arena_alloc(arena, ((size_t)found.count + 1) * sizeof *found.items);
    found.count = 0;
    for (int i = 0; i < interp->map.n_contents; i++) {
      struct map_content item = interp->map.contents[i];
      if (item.from >= value->base + value->slot_size || item.to <= value->base) continue;
      item.from -= value->base;
      item.to -= value->base;
      if (pass == 1) found.items[found.count] = item;
      found.count++;
    }
  }
  return found;
}

static bool same_contents(struct map_contents a, struct map_contents b) {
  if (a.count != b.count) return false;
  for (int i = 0; i < a.count; i++) {
    const struct map_content *p = &a.items[i], *q = &b.items[i];
    if (p->from != q->from || p->to != q->to || p->low != q->low || p->high != q->high || p->exact != q->exact ||
        p->grouping != q->grouping)
      return false;
  }
  return true;
}

void interp_record_pointer(struct interp *interp, int object, struct value value) {
  if (interp->recorded == NULL) return;
  if (!points_to_arena(interp, &value) || !is_plain(interp, &value) ||
      contents_of(interp, interp->arguments, &value).count > 0)
    interp_spoil_record(interp);
  record_reading(interp, (struct static_reading){.kind = READING_POINTER, .object = object, .value = value});
}

/* Whether what it read of static storage is still what it was. Of a slot that a pointer of it points to, no integers
 * were known. */
static bool is_as_read(struct interp *interp, const struct static_reading *reading) {
  const struct value *was = &reading->value, *is = &interp->states[reading->object].value;
  struct value now;
  if (interp->objects[reading->object].is_set_by_steps != reading->is_set_by_steps) return false;
  if (reading->kind == READING_OTHER) return (is->origin & ORIGIN_RANK) == reading->origin;
  if (reading->kind == READING_POINTER)
    return same_value(was, is) && was->base == is->base && was->path == is->path &&
           contents_of(interp, interp->arguments, is).count == 0;
  return interp_set_once(interp, reading->object, &now) && now.low == was->low && now.high == was->high &&
         now.origin == was->origin && now.blame == was->blame;
}

static bool overlap(const struct value *a, const struct value *b) {
  return a->base < b->base + b->slot_size && b->base < a->base + a->slot_size;
}

/* Whether two slots are to each other as two others are: apart, or as far from each other and one slot where those are.
 */
static bool same_distance(const struct value *a, const struct value *b, const struct value *c, const struct value *d) {
  if (!overlap(a, b) && !overlap(c, d)) return true;
  return a->base - b->base == c->base - d->base && (a->path == b->path) == (c->path == d->path);
}

static bool is_like(struct interp *interp, const struct again *again, const struct again *call) {
  const int count = call->function->n_parameters;
  if (again->function != call->function || again->guards != call->guards || again->iterations != call->iterations)
    return false;
  if ((again->depth == 0) != (call->depth == 0) || call->depth + again->height >= DEEPEST_CALL) return false;
  for (int i = 0; i < count; i++) {
    const struct value *a = &again->arguments[i], *b = &call->arguments[i];
    if (!same_but_for_place(a, b, again->alignment)) return false;
    if (!same_contents(again->contents[i], call->contents[i])) return false;
    for (int k = 0; k < i && points_to_arena(interp, a); k++)
      if (points_to_arena(interp, &again->arguments[k]) &&
          !same_distance(&again->arguments[k], a, &call->arguments[k], b))
        return false;
  }
  for (int i = 0; i < again->readings.count; i++) {
    const struct static_reading *reading = &again->readings.items[i];
    if (!is_as_read(interp, reading)) return false;
    for (int k = 0; k < count && reading->kind == READING_POINTER; k++)
      if (points_to_arena(interp, &again->arguments[k]) &&
          !same_distance(&again->arguments[k], &reading->value, &call->arguments[k], &reading->value))
        return false;
  }
  return true;
}

/* ---- The same accesses elsewhere ---- */

/* The argument through which a path was reached; -1: none. */
static int argument_at(const struct interp *interp, const struct again *again, const struct path *path) {
  for (; path != NULL; path = path->parent)
    for (int i = 0; i < again->function->n_parameters; i++)
      if (points_to_arena(interp, &again->arguments[i]) && again->arguments[i].path == path) return i;
  return -1;
}

/* Whether a path was reached through a pointer of static storage, which is where it was. */
static bool is_of_pointer(const struct again *again, const struct path *path) {
  for (; path != NULL; path = path->parent)
    for (int i = 0; i < again->readings.count; i++)
      if (again->readings.items[i].kind == READING_POINTER && again->readings.items[i].value.path == path) return true;
  return false;
}

static const struct path *moved_path(struct interp *interp, const struct path *path, const struct path *from,
                                     const struct path *to) {
  if (path == from) return to;
  struct path *moved = arena_alloc(interp->memory, sizeof *moved);
  *moved = *path;
  moved->parent = moved_path(interp, path->parent, from, to);
  return moved;
}

static struct pending_access moved_access(struct interp *interp, const struct again *again, const struct again *call,
                                          struct pending_access access) {
  const int which = argument_at(interp, again, access.path);
  if (which < 0) return access;
  const struct value *from = &again->arguments[which], *to = &call->arguments[which];
  access.from += to->base - from->base;
  access.to += to->base - from->base;
  access.path = moved_path(interp, access.path, from->path, to->path);
  return access;
}

static void repeat_change(struct interp *interp, const struct again *again, const struct again *call,
                          const struct content_change *change) {
  const int which = argument_at(interp, again, change->path);
  const int64_t moved = which < 0 ? 0 : call->arguments[which].base - again->arguments[which].base;
  const int64_t from = change->from + moved, size = change->to - change->from;
  if (change->sets) {
    struct value at = interp_address(interp, interp->arena_object);
    at.base = from;
    at.slot_size = size;
    interp_set_content(interp, at, size, change->content);
    return;
  }
  interp->incoming = change->content;
  interp_widen_contents(interp, from, from + size);
  interp->incoming = (struct content){0};
}

static bool may_race(const struct interp *interp, const struct pending_access *access) {
  for (const struct transfer *item = interp->in_flight.newest; item != NULL; item = item->older)
    for (int i = 0; i < item->n_memory; i++) {
      const struct transfer_memory *memory = &item->memory[i];
      if (memory->object == interp->arena_object && memory->from < access->to && memory->to > access->from &&
          (access->is_write || memory->use != TRANSFER_READS))
        return true;
    }
  return false;
}

static void repeat_access(struct interp *interp, const struct pending_access *access) {
  if (access->is_write) interp_check_outside(interp, access->from, access->to, access->node);
  interp_apply(interp, access);
}

/* False, and the map as it was, if one of them fails. */
static bool repeat(struct interp *interp, const struct again *again, const struct again *call) {
  struct map *map = &interp->map;
  const int failures = interp->failures.count, count = map->count;
  const struct map_contents contents = map_copy_contents(interp->arguments, map);
  struct map_entry *before = arena_alloc(interp->arguments, (size_t)count * sizeof *before);
  if (count > 0) memcpy(before, map->items, (size_t)count * sizeof *before);
  bool good = true;
  for (int i = 0; i < again->accesses.count && good; i++) {
    const struct pending_access access = moved_access(interp, again, call, again->accesses.items[i]);
    good = !may_race(interp, &access);
    if (good) repeat_access(interp, &access);
    good = good && interp->failures.count == failures;
  }
  if (good) {
    for (int i = 0; i < again->changes.count; i++) repeat_change(interp, again, call, &again->changes.items[i]);
    for (int i = 0; i < again->set.count; i++) interp->objects[again->set.items[i]].is_set_by_steps = true;
    interp->n_accesses += again->n_accesses;
    interp->n_regions += again->n_regions;
    interp->n_listed += again->n_listed;
    if (interp->in_flight.newest != NULL) interp->n_concurrent += again->n_accesses;
    return true;
  }
  interp->failures.count = failures;
  map->count = count;
  if (count > 0) memcpy(map->items, before, (size_t)count * sizeof *before);
  map_take_contents(interp->memory, map, contents);
  return false;
}

/* ---- Calls ---- */

static bool can_be_recorded(const struct interp *interp, const struct function *function,
                            const struct value *arguments) {
  bool can_be = function->is_device && function->result->kind == TYPE_VOID && interp->recorded == NULL &&
                interp->kernel_base == 0 && interp->n_loops == 0 && !interp->in_kernel && interp->in_step_path &&
                interp->pending.count == 0 && interp->stored.count == 0;
  for (int i = 0; can_be && i < function->n_parameters; i++) can_be = is_plain(interp, &arguments[i]);
  return can_be;
}

static struct again describe(struct interp *interp, struct arena *arena, const struct function *function,
                             const struct value *arguments) {
  const size_t count = (size_t)function->n_parameters + 1;
  struct value *copy = arena_alloc(arena, count * sizeof *copy);
  struct map_contents *contents = arena_alloc(arena, count * sizeof *contents);
  for (int i = 0; i < function->n_parameters; i++) {
    copy[i] = arguments[i];
    contents[i] = contents_of(interp, arena, &arguments[i]);
  }
  return (struct again){.function = function,
                        .arguments = copy,
                        .contents = contents,
                        .guards = interp->guards,
                        .iterations = interp->iterations,
                        .depth = interp->depth,
                        .alignment = 64}; /* which the arena's own address has */
}

/* Whether all that a call did is in its record, so that it can be done elsewhere. */
static bool is_whole(const struct interp *interp, const struct again *again) {
  bool whole = !interp->is_spoiled && interp->steps < INTERP_MAX_STEPS;
  for (int i = 0; i < again->accesses.count && whole; i++) {
    const struct path *path = again->accesses.items[i].path;
    whole = argument_at(interp, again, path) >= 0 || is_of_pointer(again, path);
  }
  for (int i = 0; i < again->changes.count && whole; i++) {
    const struct content_change *change = &again->changes.items[i];
    whole = argument_at(interp, again, change->path) >= 0 || is_of_pointer(again, change->path);
    whole = whole && !(again->chooses && (change->sets || change->content.known));
  }
  return whole;
}

/* Follows the call; it is kept if all that it did is in the record. */
static void follow(struct interp *interp, struct function *function, const struct value *arguments) {
  struct again again = describe(interp, interp->memory, function, arguments);
  const int failures = interp->failures.count, n_accesses = interp->n_accesses;
  const int n_regions = interp->n_regions, n_listed = interp->n_listed;
  interp->recorded = &again;
  interp->is_spoiled = false;
  interp->deepest = interp->depth;
  interp_run(interp, function, arguments);
  interp->recorded = NULL;
  again.n_accesses = interp->n_accesses - n_accesses;
  again.n_regions = interp->n_regions - n_regions;
  again.n_listed = interp->n_listed - n_listed;
  again.height = interp->deepest - interp->depth;
  if (interp->failures.count == failures && is_whole(interp, &again)) ARENA_PUSH(interp->memory, interp->again, again);
}

bool interp_call_again(struct interp *interp, struct function *function, const struct value *arguments) {
  if (!can_be_recorded(interp, function, arguments)) return false;
  const struct again call = describe(interp, interp->arguments, function, arguments);
  int alike = 0;
  for (int i = 0; i < interp->again.count; i++) {
    const struct again *again = &interp->again.items[i];
    if (!is_like(interp, again, &call)) continue;
    if (repeat(interp, again, &call)) return true;
    alike++;
  }
  if (alike >= MOST_RECORDS) return false;
  follow(interp, function, arguments);
  return true;
}
