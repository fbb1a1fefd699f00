/* Calls of the device's half that are followed once: what a launch does to the arena follows from its arguments. A
 * later call with the same numbers, and with pointers to slots of the same sizes and contents, does the same to its
 * slots. If anything would fail then, the call is followed like the first one. */
#include <string.h>

#include "gen/audit/externals.h"
#include "gen/audit/interp.h"

enum { MOST_RECORDS = 4 }; /* of calls that are alike */

/* What interp_set_once gave. */
struct number {
  int object;
  struct value value;
};

/* A call, as far as what it does depends on it. */
struct again {
  const struct function *function;
  const struct value *arguments;
  const struct map_contents *contents; /* by argument: the integers known in its slot */
  uint64_t guards;
  int depth;
  int64_t alignment; /* to which its checks looked at addresses */
  struct {
    struct pending_access *items;
    int count, capacity;
  } accesses; /* to the arena, in order */
  int n_accesses;
  struct {
    struct number *items;
    int count, capacity;
  } numbers; /* of static storage, that it reads */
};

/* ---- What is being recorded ---- */

void interp_spoil_record(struct interp *interp) {
  interp->is_spoiled = true;
}

void interp_record_access(struct interp *interp, const struct pending_access *access) {
  if (interp->recorded != NULL) ARENA_PUSH(interp->memory, interp->recorded->accesses, *access);
}

void interp_record_number(struct interp *interp, int object, struct value value) {
  const struct number number = {object, value};
  if (interp->recorded != NULL) ARENA_PUSH(interp->memory, interp->recorded->numbers, number);
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

static bool same_but_for_place(const struct value *a, const struct value *b, int64_t alignment) {
  struct value moved = *b;
  moved.base = a->base;
  moved.path = a->path;
  return memcmp(a, &moved, sizeof moved) == 0 && (a->base - b->base) % alignment == 0;
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

/* Whether what it read of static storage is still what it was. */
static bool has_same_numbers(struct interp *interp, const struct again *again) {
  for (int i = 0; i < again->numbers.count; i++) {
    const struct value *was = &again->numbers.items[i].value;
    struct value now;
    if (!interp_set_once(interp, again->numbers.items[i].object, &now)) return false;
    if (now.low != was->low || now.high != was->high || now.origin != was->origin || now.blame != was->blame)
      return false;
  }
  return true;
}

static bool is_like(struct interp *interp, const struct again *again, const struct again *call) {
  const int count = call->function->n_parameters;
  if (again->function != call->function || again->guards != call->guards || again->depth != call->depth) return false;
  if (!has_same_numbers(interp, again)) return false;
  for (int i = 0; i < count; i++) {
    const struct value *a = &again->arguments[i], *b = &call->arguments[i];
    if (!same_but_for_place(a, b, again->alignment)) return false;
    if (!same_contents(again->contents[i], call->contents[i])) return false;
    for (int k = 0; k < i && points_to_arena(interp, a); k++)
      if ((again->arguments[k].path == a->path) != (call->arguments[k].path == b->path)) return false;
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
  const struct value *from = &again->arguments[which], *to = &call->arguments[which];
  access.from += to->base - from->base;
  access.to += to->base - from->base;
  access.path = moved_path(interp, access.path, from->path, to->path);
  return access;
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
  if (access->is_write) interp_widen_contents(interp, access->from, access->to); /* by no integers that are known */
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
    interp->n_accesses += again->n_accesses;
    if (interp->in_flight.newest != NULL) interp->n_concurrent += again->accesses.count;
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
                        .depth = interp->depth,
                        .alignment = 64}; /* which the arena's own address has */
}

/* Follows the call; it is kept if all that it did is in the record. */
static void follow(struct interp *interp, struct function *function, const struct value *arguments) {
  struct again again = describe(interp, interp->memory, function, arguments);
  const int failures = interp->failures.count, n_accesses = interp->n_accesses;
  interp->recorded = &again;
  interp->is_spoiled = false;
  interp_run(interp, function, arguments);
  interp->recorded = NULL;
  bool whole = !interp->is_spoiled && interp->failures.count == failures && interp->steps < INTERP_MAX_STEPS;
  for (int i = 0; i < again.accesses.count && whole; i++)
    whole = argument_at(interp, &again, again.accesses.items[i].path) >= 0;
  again.n_accesses = interp->n_accesses - n_accesses;
  if (whole) ARENA_PUSH(interp->memory, interp->again, again);
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
