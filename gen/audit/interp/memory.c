/* Accesses to objects. */
#include "gen/audit/interp/region.h"

/* ---- The arena ---- */

void interp_apply(struct interp *interp, const struct pending_access *access) {
  interp_record_access(interp, access);
  if (access->is_write) {
    interp_note_update(interp, access);
    map_write(interp->memory, &interp->map, access->from, access->to, access->path);
    return;
  }
  struct value slot = interp_address(interp, interp->arena_object);
  slot.path = access->path;
  int64_t missing = map_unwritten(&interp->map, access->from, access->to);
  bool certain = missing >= 0 ? missing < access->from + access->certain : access->certain > 0;
  certain = certain && !interp->has_unknown_write;
  enum verdict verdict = certain ? VERDICT_BROKEN : VERDICT_CANNOT_TELL;
  if (missing >= 0)
    interp_fail(interp, FAILURE_UNWRITTEN, verdict, access->node, 0, "%s %s (byte %lld of its %lld)",
                interp_slot_name(interp, slot),
                certain ? "is read before this step writes it" : "may be read before this step writes it",
                (long long)(missing - access->from), (long long)(access->to - access->from));
  const struct path *taken = map_taken(&interp->map, access->from, access->to, access->path);
  if (taken == NULL) return;
  struct value other = slot;
  other.path = taken;
  interp_fail(interp, FAILURE_OVERLAP, verdict, access->node, 0,
              certain ? "%s is read after %s was written over it" : "%s may be read after %s was written over it",
              interp_slot_name(interp, slot), interp_slot_name(interp, other));
}

bool interp_reads_unwritten(const struct interp *interp, int access) {
  const struct pending_access *read = &interp->pending.items[access];
  int64_t from = read->from, missing;
  if (read->is_write) return false;
  while (from < read->to && (missing = map_unwritten(&interp->map, from, read->to)) >= 0) {
    from = missing;
    for (int i = 0; i < access && from == missing; i++) {
      const struct pending_access *other = &interp->pending.items[i];
      if (other->is_write && other->from <= missing && other->to > missing) from = other->to;
    }
    if (from == missing) return true;
  }
  return false;
}

/* Integers that a kernel put into a slot of the device, all of it. */
static void apply_stored(struct interp *interp) {
  for (int i = 0; i < interp->stored.count; i++) {
    const struct stored *stored = &interp->stored.items[i];
    int64_t missing;
    if (ranges_cover(stored->written, 0, stored->slot.slot_size, &missing))
      interp_set_content(interp, stored->slot, stored->slot.slot_size, stored->content);
  }
  interp->stored.count = 0;
}

void interp_flush(struct interp *interp) {
  if (interp->n_loops > 0) return;
  for (int i = 0; i < interp->pending.count; i++) interp_apply(interp, &interp->pending.items[i]);
  interp->pending.count = 0;
  apply_stored(interp);
}

static void store_integers(struct interp *interp, struct value at, int64_t size) {
  struct stored *stored = NULL;
  for (int i = 0; i < interp->stored.count && stored == NULL; i++)
    if (interp->stored.items[i].slot.base == at.base && interp->stored.items[i].slot.slot_size == at.slot_size)
      stored = &interp->stored.items[i];
  if (stored == NULL) {
    struct stored first = {.slot = at, .content = interp->incoming};
    first.slot.low = first.slot.high = 0;
    if (interp->doubts > 0) first.content = content_join(first.content, interp_content(interp, first.slot));
    ARENA_PUSH(interp->memory, interp->stored, first);
    stored = &interp->stored.items[interp->stored.count - 1];
  }
  stored->content = content_join(stored->content, interp->incoming);
  stored->written = ranges_add(interp->memory, stored->written, at.low, at.high + size);
}

/* A write of a kernel whose threads are too few for the places that its index goes through; parts of them always are.
 */
static void check_places(struct interp *interp, struct value at, const struct syntax *node) {
  const int64_t missing = interp->halvings == 0 ? interp_places_left_out(interp, at.form) : 0;
  if (missing > 0)
    interp_fail(interp, FAILURE_PARTIAL, VERDICT_BROKEN, node, 0,
                "'%s' leaves out %lld of the places that its index goes through", interp_spell(interp, node),
                (long long)missing);
}

static void touch_arena(struct interp *interp, struct value pointer, int64_t from, int64_t to, bool is_write,
                        const struct syntax *node) {
  int64_t width = pointer.high - pointer.low + pointer.base_width; /* without it, the bytes of one access */
  int64_t certain = interp_imprecision(interp, pointer) == 0 ? to - from - width : 0;
  if (is_write) check_places(interp, pointer, node);
  const bool has_gaps = is_write && interp_leaves_gaps(interp, pointer, to - from - width);
  struct pending_access access = {
      is_write, certain, from, to, pointer.path, node, pointer.loops | pointer.blame, pointer.blame == 0, has_gaps};
  if (interp->n_loops == 0) {
    interp_apply(interp, &access);
    return;
  }
  for (int i = interp->pending.count - 1; i >= 0 && i >= interp->pending.count - 8; i--) {
    const struct pending_access *known = &interp->pending.items[i];
    if (known->is_write == is_write && known->certain >= certain && known->from <= from && known->to >= to &&
        known->path == pointer.path && known->node == node && known->has_gaps == has_gaps)
      return;
  }
  ARENA_PUSH(interp->memory, interp->pending, access);
}

/* ---- Accesses ---- */

static bool is_scalar(const struct type *type) {
  return type->kind == TYPE_INTEGER || type->kind == TYPE_REAL || type->kind == TYPE_POINTER;
}

/* A number of which no check is seen may be anything of its type. */
static bool is_unbounded(struct value at, int64_t element) {
  bool open =
      (at.blame & BLAME_ALWAYS) != 0 && (at.high / element >= INT32_MAX / 2 || at.low / element <= INT32_MIN / 2);
  return open || ((at.origin & ORIGIN_DATA) != 0 && (at.high > INT32_MAX || at.low < INT32_MIN));
}

static void fail_bounds(struct interp *interp, struct value at, int64_t size, const struct syntax *node) {
  if (at.origin & ORIGIN_REPORTED) return;
  const char *what = interp_spell(interp, node), *slot = interp_slot_name(interp, at);
  long long element = size > 0 ? size : 1,
            reached = at.low < 0 ? bounded_add(at.low, 1 - element) / element : at.high / element;
  uint64_t imprecision = interp_imprecision(interp, at);
  bool certain = imprecision == 0;
  if (at.object < 0 && interp->in_step_path && interp->untracked == NULL) interp->untracked = node;
  if (at.object < 0 || at.slot_size < 0)
    interp_fail(interp, FAILURE_BOUNDS, VERDICT_CANNOT_TELL, node, imprecision, "what '%s' points to is not known",
                what);
  else if (is_unbounded(at, element))
    interp_fail(interp, FAILURE_BOUNDS, VERDICT_CANNOT_TELL, node, imprecision,
                "'%s': nothing bounds the number that chooses an element of %s[%lld]", what, slot,
                at.slot_size / element);
  else
    interp_fail(interp, FAILURE_BOUNDS, certain ? VERDICT_BROKEN : VERDICT_CANNOT_TELL, node, imprecision,
                certain ? "'%s' reaches element %lld of %s[%lld]" : "'%s' may reach element %lld of %s[%lld]", what,
                reached, slot, at.slot_size / element);
}

/* missing: the byte of the object; -1 when it is a number of its own. */
static void fail_unwritten(struct interp *interp, const struct syntax *node, uint64_t blame, int64_t missing,
                           int object) {
  const struct state *state = &interp->states[object];
  const char *name = interp->objects[object].name;
  uint64_t imprecision = blame | interp->guards;
  bool certain = imprecision == 0 && !interp->has_unknown_write && !state->maybe_written;
  const char *what = missing < 0 ? name : interp_spell(interp, node);
  const char *where = missing < 0 ? "" : arena_printf(interp->memory, " (byte %lld of %s)", (long long)missing, name);
  interp_fail(interp, FAILURE_UNWRITTEN, certain ? VERDICT_BROKEN : VERDICT_CANNOT_TELL, node, imprecision,
              certain ? "'%s' is read before it is written%s" : "'%s' may be read before it is written%s", what, where);
}

static void read_object(struct interp *interp, struct value at, int64_t from, int64_t to, const struct syntax *node) {
  struct object *object = &interp->objects[at.object];
  struct state *state = &interp->states[at.object];
  int64_t missing;
  switch (object->kind) {
  case OBJECT_STATIC:
    break;
  case OBJECT_ARENA:
    touch_arena(interp, at, from, to, false, node);
    break;
  case OBJECT_PARAMETER:
    state->exposed = ranges_add_missing(interp->memory, state->written, state->exposed, from, to);
    break;
  case OBJECT_LOCAL:
    if (ranges_cover(state->written, from, to, &missing)) break;
    fail_unwritten(interp, node, at.loops | at.blame, missing, at.object);
    state->written = ranges_add(interp->memory, state->written, from, to); /* reported once */
    break;
  }
}

/* The content of an object after the current integers are written to a part of it. */
static void take_incoming(struct interp *interp, const struct object *object, struct state *state) {
  if (object->kind == OBJECT_PARAMETER) {
    state->stored = state->has_stored ? content_join(state->stored, interp->incoming) : interp->incoming;
    state->has_stored = true;
  }
  bool is_first = object->kind == OBJECT_LOCAL && !state->content.known && !state->has_stored;
  state->content = is_first ? interp->incoming : content_join(state->content, interp->incoming);
  state->has_stored = true;
}

void interp_widen_contents(struct interp *interp, int64_t from, int64_t to) {
  struct map *map = &interp->map;
  for (int i = 0; i < map->n_contents; i++) {
    struct map_content *item = &map->contents[i];
    item->grouping = interp_grouping_after_write(interp, item->grouping, from, to);
    if (item->from >= to || item->to <= from) continue;
    struct content is = {true, item->exact, item->low, item->high, NULL}, wide = content_join(is, interp->incoming);
    *item = (struct map_content){item->from, item->to, wide.low, wide.high, wide.exact, NULL};
    if (!wide.known) map->contents[i--] = map->contents[--map->n_contents];
  }
}

static void mark_set(struct interp *interp, int which) {
  struct object *object = &interp->objects[which];
  bool lasts = object->kind == OBJECT_STATIC || object->kind == OBJECT_ARENA;
  if (!interp->in_step_path) return;
  if (lasts && object->type != NULL && object->type->kind == TYPE_POINTER) interp_spoil_record(interp);
  if (lasts && !object->is_set_by_steps) interp_record_set(interp, which);
  object->is_set_by_steps = true;
}

static void write_object(struct interp *interp, struct value at, int64_t from, int64_t to, const struct syntax *node) {
  struct object *object = &interp->objects[at.object];
  struct state *state = &interp->states[at.object];
  if (object->kind == OBJECT_ARENA) {
    touch_arena(interp, at, from, to, true, node);
    interp_record_content(interp, at, from, to, false, interp->incoming);
    interp_widen_contents(interp, from, to);
  } else {
    bool sorts = state->content.grouping != NULL && state->content.grouping->kind == GROUPING_CURSORS;
    if (sorts || (interp->in_kernel && at.object == interp->sorted_index))
      interp_fail(interp, FAILURE_BOUNDS, VERDICT_CANNOT_TELL, node, 0,
                  "'%s' changes what a counting sort goes through", interp_spell(interp, node));
    take_incoming(interp, object, state);
    state->written = ranges_add(interp->memory, state->written, from, to);
    state->value.fields = NULL; /* interp_store sets what is known of it again */
    if (object->type != NULL && is_scalar(object->type)) state->value = value_of_type(object->type, ORIGIN_DATA);
  }
  mark_set(interp, at.object);
}

/* In a region whose accesses are listed, what is written is none of the state: that is known from elsewhere. */
static bool list_access(struct interp *interp, struct value at, int64_t size, bool is_write,
                        const struct syntax *node) {
  interp_region_access(interp, at, size, is_write, node);
  if (at.object < 0) return false;
  const int64_t from = at.base + at.low, to = at.base + at.base_width + at.high + size;
  if (is_write && interp->objects[at.object].kind == OBJECT_ARENA)
    interp_widen_contents(interp, from, to);
  else if (is_write)
    take_incoming(interp, &interp->objects[at.object], &interp->states[at.object]);
  return at.slot_size >= 0 && at.low >= 0 && bounded_add(at.high, size) <= at.slot_size;
}

bool interp_access(struct interp *interp, struct value at, int64_t size, bool is_write, const struct syntax *node) {
  if (interp->region != NULL) return list_access(interp, at, size, is_write, node);
  interp->n_accesses++;
  bool good = at.object >= 0 && at.slot_size >= 0 && at.low >= 0 && bounded_add(at.high, size) <= at.slot_size;
  if (!good) {
    if (is_write && at.object < 0 && (at.origin & ORIGIN_REPORTED) == 0) interp_unknown_write(interp);
    fail_bounds(interp, at, size, node);
    if (is_write) interp_fail_outside(interp, at, node);
    if (at.object < 0 || at.slot_size < size || at.low > at.slot_size - size || at.high < 0) return false;
    if (at.low < 0) at.low = 0; /* what is inside is accessed all the same */
    if (at.high > at.slot_size - size) at.high = at.slot_size - size;
  }
  int64_t from = at.base + at.low, to = at.base + at.base_width + at.high + size;
  if ((at.origin & ORIGIN_DATA) != 0) interp->states[at.object].by_data = true;
  interp_check_race(interp, at, from, to, is_write, node);
  if (is_write && at.object == interp->arena_object) interp_check_outside(interp, from, to, node);
  if (is_write)
    write_object(interp, at, from, to, node);
  else
    read_object(interp, at, from, to, node);
  return good;
}

/* ---- Contents ---- */

void interp_set_content(struct interp *interp, struct value at, int64_t size, struct content content) {
  if (at.object < 0) return;
  const struct object *object = &interp->objects[at.object];
  if (object->kind == OBJECT_STATIC) interp_spoil_record(interp);
  if (object->kind == OBJECT_ARENA)
    interp_record_content(interp, at, at.base + at.low, at.base + at.low + size, true, content);
  if (object->kind != OBJECT_ARENA) {
    struct state *state = &interp->states[at.object];
    bool part = (object->kind == OBJECT_STATIC || object->kind == OBJECT_PARAMETER) &&
                (at.base + at.low > 0 || at.base + at.low + size < object->size);
    state->content = part ? content_join(state->content, content) : content;
    return;
  }
  struct map *map = &interp->map;
  struct map_content item = {at.base + at.low, at.base + at.low + size, content.low,
                             content.high,     content.exact,           content.grouping};
  for (int i = 0; i < map->n_contents; i++)
    if (map->contents[i].from < item.to && map->contents[i].to > item.from)
      map->contents[i--] = map->contents[--map->n_contents];
  if (!content.known) return;
  map->contents =
      arena_grow(interp->memory, map->contents, map->n_contents, &map->contents_capacity, sizeof *map->contents);
  map->contents[map->n_contents++] = item;
}

struct content interp_content(const struct interp *interp, struct value at) {
  struct content none = {0};
  if (at.object < 0) return none;
  if (interp->objects[at.object].kind != OBJECT_ARENA) return interp->states[at.object].content;
  const struct map *map = &interp->map;
  for (int i = 0; i < map->n_contents; i++)
    if (map->contents[i].from <= bounded_add(at.base, at.low) &&
        map->contents[i].to > bounded_add(at.base + at.base_width, at.high)) {
      const struct map_content *item = &map->contents[i];
      bool whole = at.base_width == 0 && at.low == at.high && item->from == at.base + at.low;
      return (struct content){true, item->exact, item->low, item->high, whole ? item->grouping : NULL};
    }
  return none;
}

/* ---- Loads and stores ---- */

/* Whether an lvalue is the whole of a scalar variable, whose value is tracked. */
static bool is_whole_scalar(const struct interp *interp, struct lvalue lvalue) {
  if (lvalue.at.object < 0 || !is_scalar(lvalue.type)) return false;
  const struct object *object = &interp->objects[lvalue.at.object];
  bool whole = object->type != NULL && is_scalar(object->type) && object->size == lvalue.type->size &&
               lvalue.at.base == 0 && lvalue.at.low == 0 && lvalue.at.high == 0 && object->kind != OBJECT_PARAMETER &&
               object->kind != OBJECT_ARENA;
  return whole && (object->type->kind == lvalue.type->kind);
}

static struct value load_static(struct interp *interp, struct lvalue lvalue, const struct syntax *node) {
  struct object *object = &interp->objects[lvalue.at.object];
  bool element = node->kind == SYNTAX_INDEX; /* a table of numbers */
  unsigned origin = object->is_set_by_steps || element ? ORIGIN_DATA : ORIGIN_CONFIG;
  origin |= interp->states[lvalue.at.object].value.origin & ORIGIN_RANK;
  if (object->variable->is_constant && object->variable->initial != NULL)
    return interp_constant(interp, lvalue, origin_of_choice(lvalue.at.origin));
  struct value value = value_of_type(lvalue.type, origin);
  const bool once = !element && interp_set_once(interp, lvalue.at.object, &value);
  if (once)
    interp_record_number(interp, lvalue.at.object, value);
  else
    interp_record_origin(interp, lvalue.at.object);
  if (once) value.origin = value.origin == ORIGIN_STAGE ? 0 : origin; /* a constant of the stage that is followed */
  return value;
}

/* The ends of a range stand for what is between: pointers move by whole elements. */
static void check_alignment(struct interp *interp, struct lvalue lvalue, const struct syntax *node) {
  int64_t needed = lvalue.type->alignment;
  interp_record_alignment(interp, needed);
  if (needed <= 1 || lvalue.at.object < 0 || interp->objects[lvalue.at.object].type == NULL) return;
  if (lvalue.at.low < 0 || bounded_add(lvalue.at.high, lvalue.type->size) > lvalue.at.slot_size)
    return; /* reported already */
  const struct object *object = &interp->objects[lvalue.at.object];
  int64_t given = object->kind == OBJECT_PARAMETER ? object->type->element->alignment : object->type->alignment;
  int64_t from = lvalue.at.base + lvalue.at.low, width = lvalue.at.base_width + lvalue.at.high - lvalue.at.low;
  int64_t wrong = from % needed != 0 ? from : from + width;
  uint64_t imprecision = interp_imprecision(interp, lvalue.at);
  if (wrong % needed != 0)
    interp_fail(interp, FAILURE_ALIGNMENT, imprecision == 0 ? VERDICT_BROKEN : VERDICT_CANNOT_TELL, node, imprecision,
                "'%s' is at byte %lld of %s, but its type needs a multiple of %lld", interp_spell(interp, node),
                (long long)wrong, object->name, (long long)needed);
  else if (given < needed)
    interp_fail(interp, FAILURE_ALIGNMENT, VERDICT_CANNOT_TELL, node, imprecision,
                "'%s' needs a multiple of %lld, but %s may start at any multiple of %lld", interp_spell(interp, node),
                (long long)needed, object->name, (long long)given);
}

/* Where a part of an object comes from. Numbers of arrays are data; what a record of a function was made of is known
 * where it was written as a whole. */
static unsigned origin_of_part(const struct interp *interp, struct lvalue lvalue, bool good,
                               const struct syntax *node) {
  const struct object *object = good ? &interp->objects[lvalue.at.object] : NULL;
  const struct value *whole = good ? &interp->states[lvalue.at.object].value : NULL;
  bool record = good && object->kind == OBJECT_LOCAL && object->type->kind == TYPE_RECORD;
  if (record && whole->kind != VALUE_NOTHING) return whole->origin;
  bool element = node->kind == SYNTAX_INDEX || lvalue.type->kind == TYPE_REAL;
  return element ? ORIGIN_DATA : ORIGIN_UNTRACKED;
}

/* A record of a function as a whole. */
static bool is_whole_record(const struct interp *interp, struct lvalue lvalue) {
  if (lvalue.at.object < 0 || lvalue.type->kind != TYPE_RECORD) return false;
  const struct object *object = &interp->objects[lvalue.at.object];
  return object->kind == OBJECT_LOCAL && object->type->kind == TYPE_RECORD && object->size == lvalue.type->size &&
         lvalue.at.low == -lvalue.at.base && lvalue.at.high == lvalue.at.low && lvalue.at.base_width == 0;
}

/* What is known of a member of such a record; NULL: nothing. */
static const struct value *known_member(const struct interp *interp, struct lvalue lvalue) {
  const struct value *whole = &interp->states[lvalue.at.object].value;
  bool exact = lvalue.at.base_width == 0 && lvalue.at.low == lvalue.at.high;
  return exact ? interp_field(whole->fields, lvalue.at.base + lvalue.at.low, lvalue.type->size) : NULL;
}

/* One of several pointers of such a record, all to parts of one object: any of them, as one that may begin where any of
 * them does. False when they are not known. */
static bool any_of_members(const struct interp *interp, struct lvalue lvalue, struct value *any) {
  const struct value *whole = &interp->states[lvalue.at.object].value;
  int64_t first = lvalue.at.base + lvalue.at.low, last = lvalue.at.base + lvalue.at.high;
  if (lvalue.type->kind != TYPE_POINTER || lvalue.at.base_width > 0 || first == last) return false;
  for (int64_t at = first; at <= last; at += lvalue.type->size) {
    const struct value *one = interp_field(whole->fields, at, lvalue.type->size);
    if (one == NULL || one->kind != VALUE_POINTER || one->object < 0 || one->low != one->high) return false;
    if (at == first) *any = *one;
    if (one->object != any->object || one->low != any->low || one->slot_size != any->slot_size) return false;
    int64_t end = any->base + any->base_width, other = one->base + one->base_width;
    if (one->base < any->base) any->base = one->base;
    any->base_width = (end > other ? end : other) - any->base;
  }
  any->path = NULL;
  any->linear = NULL;
  any->form = NULL;
  any->loops |= lvalue.at.loops;
  any->blame |= lvalue.at.blame;
  return true;
}

struct value interp_load(struct interp *interp, struct lvalue lvalue, const struct syntax *node) {
  if (lvalue.type->kind == TYPE_ARRAY) return lvalue.at; /* decays */
  interp_check_address_space(interp, lvalue.at, node);
  if (lvalue.type->kind == TYPE_FUNCTION) return value_number(0);
  if (is_whole_scalar(interp, lvalue)) {
    const struct object *object = &interp->objects[lvalue.at.object];
    struct state *state = &interp->states[lvalue.at.object];
    struct value value = state->value;
    int64_t missing;
    if (object->kind == OBJECT_STATIC && value.kind != VALUE_POINTER) {
      interp_region_scalar(interp, lvalue, false, node);
      return interp_region_shared(interp, lvalue.at.object, load_static(interp, lvalue, node));
    }
    if (object->kind == OBJECT_STATIC) interp_record_pointer(interp, lvalue.at.object, value);
    interp_region_scalar(interp, lvalue, false, node);
    bool local = object->kind == OBJECT_LOCAL;
    bool written = value.kind != VALUE_NOTHING && (!local || ranges_cover(state->written, 0, object->size, &missing));
    if (!written && local) fail_unwritten(interp, node, 0, -1, lvalue.at.object);
    state->written = ranges_add(interp->memory, state->written, 0, object->size); /* reported once */
    return value.kind != VALUE_NOTHING ? value : value_of_type(lvalue.type, ORIGIN_DATA);
  }
  check_alignment(interp, lvalue, node);
  bool good = interp_access(interp, lvalue.at, lvalue.type->size, false, node);
  if (good && interp->objects[lvalue.at.object].kind == OBJECT_STATIC) return load_static(interp, lvalue, node);
  if (good && !is_whole_record(interp, lvalue) && known_member(interp, lvalue) != NULL)
    return *known_member(interp, lvalue);
  struct value any;
  if (good && any_of_members(interp, lvalue, &any)) return any;
  struct value value = value_of_type(lvalue.type, origin_of_part(interp, lvalue, good, node));
  if (good && is_whole_record(interp, lvalue)) value.fields = interp->states[lvalue.at.object].value.fields;
  struct content content = good ? interp_content(interp, lvalue.at) : (struct content){0};
  if (lvalue.type->kind == TYPE_RECORD && value.fields == NULL) interp_set_integers(interp, &value, content);
  if (content.known && lvalue.type->kind == TYPE_INTEGER) {
    value.low = content.low;
    value.high = content.high;
    if (content.exact) value.blame = 0;
    if (content.grouping != NULL && content.grouping->kind == GROUPING_STARTS && lvalue.at.base_width == 0 &&
        lvalue.at.low == lvalue.at.high && lvalue.type->size == 4)
      value.linear = interp_linear_element(interp, content.grouping, lvalue.at.low);
  }
  return interp_region_loaded(interp, lvalue.at, value);
}

/* Updates what is known of a local record after a write to it. */
static void update_fields(struct interp *interp, struct lvalue lvalue, const struct field *before, struct value value) {
  struct value *whole = &interp->states[lvalue.at.object].value;
  bool exact = lvalue.at.base_width == 0 && lvalue.at.low == lvalue.at.high;
  if (whole->kind != VALUE_NUMBER || !exact) return;
  if (is_whole_record(interp, lvalue))
    whole->fields = value.kind == VALUE_NUMBER ? value.fields : NULL;
  else if (before != NULL && is_scalar(lvalue.type))
    whole->fields = interp_set_field(interp, before, lvalue.at.base + lvalue.at.low, lvalue.type->size,
                                     value_convert(value, lvalue.type));
}

void interp_store(struct interp *interp, struct lvalue lvalue, struct value value, const struct syntax *node) {
  interp_check_address_space(interp, lvalue.at, node);
  if (is_whole_scalar(interp, lvalue)) {
    interp_region_scalar(interp, lvalue, true, node);
    const unsigned origins = value.origin | interp->states[lvalue.at.object].value.origin;
    if (interp->objects[lvalue.at.object].kind == OBJECT_STATIC && (origins & ORIGIN_RANK) != 0)
      interp_spoil_record(interp);
    interp->states[lvalue.at.object].value = value_convert(value, lvalue.type);
    interp->states[lvalue.at.object].written = interp_all_bytes(interp, lvalue.type->size);
    mark_set(interp, lvalue.at.object);
    return;
  }
  if (lvalue.type->size <= 0) return;
  check_alignment(interp, lvalue, node);
  interp->incoming = value.kind == VALUE_INTEGER ? (struct content){.known = true, .low = value.low, .high = value.high}
                                                 : interp_integers(value);
  bool on_device = interp->kernel_base > 0 && lvalue.at.object == interp->arena_object && lvalue.at.base_width == 0;
  if (on_device && interp->incoming.known) store_integers(interp, lvalue.at, lvalue.type->size);
  const struct field *fields = lvalue.at.object < 0 ? NULL : interp->states[lvalue.at.object].value.fields;
  bool good = interp_access(interp, lvalue.at, lvalue.type->size, true, node);
  bool staged = (lvalue.at.origin & ORIGIN_STAGED) != 0 && lvalue.at.base_width == 0 && lvalue.at.low == lvalue.at.high;
  if (good && staged) interp_set_content(interp, lvalue.at, lvalue.type->size, interp->incoming);
  interp->incoming = (struct content){0};
  if (!good || interp->objects[lvalue.at.object].kind != OBJECT_LOCAL) return;
  struct value *whole = &interp->states[lvalue.at.object].value;
  if (whole->kind == VALUE_NUMBER) whole->origin |= value.origin;
  update_fields(interp, lvalue, fields, value);
}
