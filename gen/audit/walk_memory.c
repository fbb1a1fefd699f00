/* Accesses to objects. */
#include "gen/audit/walk.h"

/* ---- The arena ---- */

static void apply(struct walk *walk, const struct effect_entry *effect) {
  if (effect->is_write) {
    map_write(walk->memory, &walk->map, effect->from, effect->to, effect->path);
    return;
  }
  struct value slot = walk_address(walk, walk->arena_object);
  slot.path = effect->path;
  int64_t missing = map_unwritten(&walk->map, effect->from, effect->to);
  bool certain = missing >= 0 ? missing < effect->from + effect->certain : effect->certain > 0;
  certain = certain && !walk->strays;
  enum verdict verdict = certain ? VERDICT_BROKEN : VERDICT_CANNOT_TELL;
  if (missing >= 0)
    walk_fail(walk, FAILURE_UNWRITTEN, verdict, effect->node, 0, "%s %s (byte %lld of its %lld)",
              walk_slot_name(walk, slot),
              certain ? "is read before this step writes it" : "may be read before this step writes it",
              (long long)(missing - effect->from), (long long)(effect->to - effect->from));
  const struct path *taken = map_taken(&walk->map, effect->from, effect->to, effect->path);
  if (taken == NULL) return;
  struct value other = slot;
  other.path = taken;
  walk_fail(walk, FAILURE_OVERLAP, verdict, effect->node, 0,
            certain ? "%s is read after %s was written over it" : "%s may be read after %s was written over it",
            walk_slot_name(walk, slot), walk_slot_name(walk, other));
}

/* Integers that a kernel put into a slot of the device, all of it. */
static void keep_stored(struct walk *walk) {
  for (int i = 0; i < walk->stored.count; i++) {
    const struct stored *stored = &walk->stored.items[i];
    int64_t missing;
    if (ranges_cover(stored->written, 0, stored->slot.span, &missing))
      walk_set_content(walk, stored->slot, stored->slot.span, stored->content);
  }
  walk->stored.count = 0;
}

void walk_flush(struct walk *walk) {
  if (walk->n_loops > 0) return;
  for (int i = 0; i < walk->effects.count; i++) apply(walk, &walk->effects.items[i]);
  walk->effects.count = 0;
  keep_stored(walk);
}

static void store_integers(struct walk *walk, struct value at, int64_t size) {
  struct stored *stored = NULL;
  for (int i = 0; i < walk->stored.count && stored == NULL; i++)
    if (walk->stored.items[i].slot.base == at.base && walk->stored.items[i].slot.span == at.span)
      stored = &walk->stored.items[i];
  if (stored == NULL) {
    struct stored first = {.slot = at, .content = walk->incoming};
    first.slot.low = first.slot.high = 0;
    ARENA_PUSH(walk->memory, walk->stored, first);
    stored = &walk->stored.items[walk->stored.count - 1];
  }
  stored->content = content_join(stored->content, walk->incoming);
  stored->written = ranges_add(walk->memory, stored->written, at.low, at.high + size);
}

static void touch_arena(struct walk *walk, struct value pointer, int64_t from, int64_t to, bool is_write,
                        const struct syntax *node) {
  int64_t width = pointer.high - pointer.low + pointer.base_width; /* without it, the bytes of one access */
  int64_t certain = walk_doubt(walk, pointer) == 0 ? to - from - width : 0;
  struct effect_entry effect = {is_write, certain, from, to, pointer.path, node};
  if (walk->n_loops == 0) {
    apply(walk, &effect);
    return;
  }
  for (int i = walk->effects.count - 1; i >= 0 && i >= walk->effects.count - 8; i--) {
    const struct effect_entry *known = &walk->effects.items[i];
    if (known->is_write == is_write && known->certain >= certain && known->from <= from && known->to >= to &&
        known->path == pointer.path && known->node == node)
      return;
  }
  ARENA_PUSH(walk->memory, walk->effects, effect);
}

/* ---- Accesses ---- */

static bool is_scalar(const struct type *type) {
  return type->kind == TYPE_INTEGER || type->kind == TYPE_REAL || type->kind == TYPE_POINTER;
}

/* A number of which no check is seen may be anything of its type. */
static bool is_unbounded(struct value at, int64_t unit) {
  bool open = (at.blame & BLAME_ALWAYS) != 0 && (at.high / unit >= INT32_MAX / 2 || at.low / unit <= INT32_MIN / 2);
  return open || ((at.origin & ORIGIN_DATA) != 0 && (at.high > INT32_MAX || at.low < INT32_MIN));
}

static void fail_bounds(struct walk *walk, struct value at, int64_t size, const struct syntax *node) {
  if (at.origin & ORIGIN_TOLD) return;
  const char *what = walk_spell(walk, node), *slot = walk_slot_name(walk, at);
  long long unit = size > 0 ? size : 1, reached = at.low < 0 ? bounded_add(at.low, 1 - unit) / unit : at.high / unit;
  uint64_t doubt = walk_doubt(walk, at);
  bool certain = doubt == 0;
  if (at.object < 0 && walk->hot && walk->lost == NULL) walk->lost = node;
  if (at.object < 0 || at.span < 0)
    walk_fail(walk, FAILURE_BOUNDS, VERDICT_CANNOT_TELL, node, doubt, "what '%s' points to is not known", what);
  else if (is_unbounded(at, unit))
    walk_fail(walk, FAILURE_BOUNDS, VERDICT_CANNOT_TELL, node, doubt,
              "'%s': nothing bounds the number that chooses an element of %s[%lld]", what, slot, at.span / unit);
  else
    walk_fail(walk, FAILURE_BOUNDS, certain ? VERDICT_BROKEN : VERDICT_CANNOT_TELL, node, doubt,
              certain ? "'%s' reaches element %lld of %s[%lld]" : "'%s' may reach element %lld of %s[%lld]", what,
              reached, slot, at.span / unit);
}

/* missing: the byte of the object; -1 when it is a number of its own. */
static void fail_unwritten(struct walk *walk, const struct syntax *node, uint64_t blame, int64_t missing, int object) {
  const struct state *state = &walk->states[object];
  const char *name = walk->objects[object].name;
  uint64_t doubt = blame | walk->guards;
  bool certain = doubt == 0 && !walk->strays && !state->maybe_written;
  const char *what = missing < 0 ? name : walk_spell(walk, node);
  const char *where = missing < 0 ? "" : arena_printf(walk->memory, " (byte %lld of %s)", (long long)missing, name);
  walk_fail(walk, FAILURE_UNWRITTEN, certain ? VERDICT_BROKEN : VERDICT_CANNOT_TELL, node, doubt,
            certain ? "'%s' is read before it is written%s" : "'%s' may be read before it is written%s", what, where);
}

static void read_object(struct walk *walk, struct value at, int64_t from, int64_t to, const struct syntax *node) {
  struct object *object = &walk->objects[at.object];
  struct state *state = &walk->states[at.object];
  int64_t missing;
  switch (object->kind) {
  case OBJECT_LASTING:
    break;
  case OBJECT_ARENA:
    touch_arena(walk, at, from, to, false, node);
    break;
  case OBJECT_PARAMETER:
    state->exposed = ranges_add_missing(walk->memory, state->written, state->exposed, from, to);
    break;
  case OBJECT_LOCAL:
    if (ranges_cover(state->written, from, to, &missing)) break;
    fail_unwritten(walk, node, at.loops | at.blame, missing, at.object);
    state->written = ranges_add(walk->memory, state->written, from, to); /* told once */
    break;
  }
}

/* What an object holds once the integers at hand are written to a part of it. */
static void take_incoming(struct walk *walk, const struct object *object, struct state *state) {
  if (object->kind == OBJECT_PARAMETER) {
    state->stored = state->has_stored ? content_join(state->stored, walk->incoming) : walk->incoming;
    state->has_stored = true;
  }
  bool is_first = object->kind == OBJECT_LOCAL && !state->content.known && !state->has_stored;
  state->content = is_first ? walk->incoming : content_join(state->content, walk->incoming);
  state->has_stored = true;
}

/* The same for the arena. */
static void widen_contents(struct walk *walk, int64_t from, int64_t to) {
  struct map *map = &walk->map;
  for (int i = 0; i < map->n_contents; i++) {
    struct map_content *item = &map->contents[i];
    if (item->from >= to || item->to <= from) continue;
    struct content wide = content_join((struct content){true, item->exact, item->low, item->high}, walk->incoming);
    *item = (struct map_content){item->from, item->to, wide.low, wide.high, wide.exact};
    if (!wide.known) map->contents[i--] = map->contents[--map->n_contents];
  }
}

static void write_object(struct walk *walk, struct value at, int64_t from, int64_t to, const struct syntax *node) {
  struct object *object = &walk->objects[at.object];
  struct state *state = &walk->states[at.object];
  if (object->kind == OBJECT_ARENA) {
    touch_arena(walk, at, from, to, true, node);
    widen_contents(walk, from, to);
  } else {
    take_incoming(walk, object, state);
    state->written = ranges_add(walk->memory, state->written, from, to);
    state->value.fields = NULL; /* what the walk knows of it stands there again, walk_store */
    if (object->type != NULL && is_scalar(object->type)) state->value = value_of_type(object->type, ORIGIN_DATA);
  }
  if (walk->hot) object->is_set_hot = true;
}

bool walk_access(struct walk *walk, struct value at, int64_t size, bool is_write, const struct syntax *node) {
  walk->n_accesses++;
  bool good = at.object >= 0 && at.span >= 0 && at.low >= 0 && bounded_add(at.high, size) <= at.span;
  if (!good) {
    if (is_write && at.object < 0 && (at.origin & ORIGIN_TOLD) == 0) walk_stray(walk);
    fail_bounds(walk, at, size, node);
    if (at.object < 0 || at.span < size || at.low > at.span - size || at.high < 0) return false;
    if (at.low < 0) at.low = 0; /* what lies inside is accessed all the same */
    if (at.high > at.span - size) at.high = at.span - size;
  }
  int64_t from = at.base + at.low, to = at.base + at.base_width + at.high + size;
  if ((at.origin & ORIGIN_DATA) != 0) walk->states[at.object].by_data = true;
  if (is_write)
    write_object(walk, at, from, to, node);
  else
    read_object(walk, at, from, to, node);
  return good;
}

/* ---- Contents ---- */

void walk_set_content(struct walk *walk, struct value at, int64_t size, struct content content) {
  if (at.object < 0) return;
  const struct object *object = &walk->objects[at.object];
  if (object->kind != OBJECT_ARENA) {
    struct state *state = &walk->states[at.object];
    bool part = object->kind == OBJECT_LASTING && (at.base + at.low > 0 || at.base + at.low + size < object->size);
    state->content = part ? content_join(state->content, content) : content;
    return;
  }
  struct map *map = &walk->map;
  struct map_content item = {at.base + at.low, at.base + at.low + size, content.low, content.high, content.exact};
  for (int i = 0; i < map->n_contents; i++)
    if (map->contents[i].from < item.to && map->contents[i].to > item.from)
      map->contents[i--] = map->contents[--map->n_contents];
  if (!content.known) return;
  map->contents =
      arena_grow(walk->memory, map->contents, map->n_contents, &map->contents_capacity, sizeof *map->contents);
  map->contents[map->n_contents++] = item;
}

struct content walk_content(const struct walk *walk, struct value at) {
  struct content none = {0};
  if (at.object < 0) return none;
  if (walk->objects[at.object].kind != OBJECT_ARENA) return walk->states[at.object].content;
  const struct map *map = &walk->map;
  for (int i = 0; i < map->n_contents; i++)
    if (map->contents[i].from <= bounded_add(at.base, at.low) &&
        map->contents[i].to > bounded_add(at.base + at.base_width, at.high))
      return (struct content){true, map->contents[i].exact, map->contents[i].low, map->contents[i].high};
  return none;
}

/* ---- Loads and stores ---- */

/* Whether a place is the whole of a scalar variable, whose value is followed. */
static bool is_whole_scalar(const struct walk *walk, struct place place) {
  if (place.at.object < 0 || !is_scalar(place.type)) return false;
  const struct object *object = &walk->objects[place.at.object];
  bool whole = object->type != NULL && is_scalar(object->type) && object->size == place.type->size &&
               place.at.base == 0 && place.at.low == 0 && place.at.high == 0 && object->kind != OBJECT_PARAMETER &&
               object->kind != OBJECT_ARENA;
  return whole && (object->type->kind == place.type->kind);
}

static struct value load_lasting(struct walk *walk, struct place place, const struct syntax *node) {
  struct object *object = &walk->objects[place.at.object];
  bool element = node->kind == SYNTAX_INDEX; /* a table of numbers */
  unsigned origin = object->is_set_hot || element ? ORIGIN_DATA : ORIGIN_CONFIG;
  origin |= walk->states[place.at.object].value.origin & ORIGIN_RANK;
  if (object->variable->is_constant && object->variable->initial != NULL)
    return walk_constant(walk, place, origin_of_choice(place.at.origin));
  struct value value = value_of_type(place.type, origin);
  if (!element && walk_set_once(walk, place.at.object, &value)) value.origin = origin;
  return value;
}

/* The ends of a range stand for what is between: pointers move by whole elements. */
static void check_alignment(struct walk *walk, struct place place, const struct syntax *node) {
  int64_t needed = place.type->alignment;
  if (needed <= 1 || place.at.object < 0 || walk->objects[place.at.object].type == NULL) return;
  if (place.at.low < 0 || bounded_add(place.at.high, place.type->size) > place.at.span) return; /* told of already */
  const struct object *object = &walk->objects[place.at.object];
  int64_t given = object->kind == OBJECT_PARAMETER ? object->type->element->alignment : object->type->alignment;
  int64_t from = place.at.base + place.at.low, width = place.at.base_width + place.at.high - place.at.low;
  int64_t wrong = from % needed != 0 ? from : from + width;
  uint64_t doubt = walk_doubt(walk, place.at);
  if (wrong % needed != 0)
    walk_fail(walk, FAILURE_ALIGNMENT, doubt == 0 ? VERDICT_BROKEN : VERDICT_CANNOT_TELL, node, doubt,
              "'%s' stands at byte %lld of %s, its type at multiples of %lld", walk_spell(walk, node), (long long)wrong,
              object->name, (long long)needed);
  else if (given < needed)
    walk_fail(walk, FAILURE_ALIGNMENT, VERDICT_CANNOT_TELL, node, doubt,
              "'%s' stands at multiples of %lld, and %s may stand at any of %lld", walk_spell(walk, node),
              (long long)needed, object->name, (long long)given);
}

/* Where a part of an object comes from. Numbers of arrays are data; what a record of a function was made of is known
 * where it was written as a whole. */
static unsigned origin_of_part(const struct walk *walk, struct place place, bool good, const struct syntax *node) {
  const struct object *object = good ? &walk->objects[place.at.object] : NULL;
  const struct value *whole = good ? &walk->states[place.at.object].value : NULL;
  bool record = good && object->kind == OBJECT_LOCAL && object->type->kind == TYPE_RECORD;
  if (record && whole->kind != VALUE_NOTHING) return whole->origin;
  bool element = node->kind == SYNTAX_INDEX || place.type->kind == TYPE_REAL;
  return element ? ORIGIN_DATA : ORIGIN_UNFOLLOWED;
}

/* A record of a function as a whole. */
static bool is_whole_record(const struct walk *walk, struct place place) {
  if (place.at.object < 0 || place.type->kind != TYPE_RECORD) return false;
  const struct object *object = &walk->objects[place.at.object];
  return object->kind == OBJECT_LOCAL && object->type->kind == TYPE_RECORD && object->size == place.type->size &&
         place.at.low == -place.at.base && place.at.high == place.at.low && place.at.base_width == 0;
}

/* What is known of a member of such a record; NULL: nothing. */
static const struct value *known_member(const struct walk *walk, struct place place) {
  const struct value *whole = &walk->states[place.at.object].value;
  bool exact = place.at.base_width == 0 && place.at.low == place.at.high;
  return exact ? walk_field(whole->fields, place.at.base + place.at.low, place.type->size) : NULL;
}

/* One of several pointers of such a record, all to parts of one object: any of them, as one that may begin where any of
 * them does. False when they are not known. */
static bool any_of_members(const struct walk *walk, struct place place, struct value *any) {
  const struct value *whole = &walk->states[place.at.object].value;
  int64_t first = place.at.base + place.at.low, last = place.at.base + place.at.high;
  if (place.type->kind != TYPE_POINTER || place.at.base_width > 0 || first == last) return false;
  for (int64_t at = first; at <= last; at += place.type->size) {
    const struct value *one = walk_field(whole->fields, at, place.type->size);
    if (one == NULL || one->kind != VALUE_POINTER || one->object < 0 || one->low != one->high) return false;
    if (at == first) *any = *one;
    if (one->object != any->object || one->low != any->low || one->span != any->span) return false;
    int64_t end = any->base + any->base_width, other = one->base + one->base_width;
    if (one->base < any->base) any->base = one->base;
    any->base_width = (end > other ? end : other) - any->base;
  }
  any->path = NULL;
  any->loops |= place.at.loops;
  any->blame |= place.at.blame;
  return true;
}

struct value walk_load(struct walk *walk, struct place place, const struct syntax *node) {
  if (place.type->kind == TYPE_ARRAY) return place.at; /* decays */
  walk_check_side(walk, place.at, node);
  if (place.type->kind == TYPE_FUNCTION) return value_number(0);
  if (is_whole_scalar(walk, place)) {
    const struct object *object = &walk->objects[place.at.object];
    struct state *state = &walk->states[place.at.object];
    struct value value = state->value;
    int64_t missing;
    if (object->kind == OBJECT_LASTING && value.kind != VALUE_POINTER) return load_lasting(walk, place, node);
    bool local = object->kind == OBJECT_LOCAL;
    bool written = value.kind != VALUE_NOTHING && (!local || ranges_cover(state->written, 0, object->size, &missing));
    if (!written && local) fail_unwritten(walk, node, 0, -1, place.at.object);
    state->written = ranges_add(walk->memory, state->written, 0, object->size); /* told once */
    return value.kind != VALUE_NOTHING ? value : value_of_type(place.type, ORIGIN_DATA);
  }
  check_alignment(walk, place, node);
  bool good = walk_access(walk, place.at, place.type->size, false, node);
  if (good && walk->objects[place.at.object].kind == OBJECT_LASTING) return load_lasting(walk, place, node);
  if (good && !is_whole_record(walk, place) && known_member(walk, place) != NULL) return *known_member(walk, place);
  struct value any;
  if (good && any_of_members(walk, place, &any)) return any;
  struct value value = value_of_type(place.type, origin_of_part(walk, place, good, node));
  if (good && is_whole_record(walk, place)) value.fields = walk->states[place.at.object].value.fields;
  struct content content = good ? walk_content(walk, place.at) : (struct content){0};
  if (place.type->kind == TYPE_RECORD && value.fields == NULL) walk_set_integers(walk, &value, content);
  if (content.known && place.type->kind == TYPE_INTEGER) {
    value.low = content.low;
    value.high = content.high;
    if (content.exact) value.blame = 0;
  }
  return value;
}

/* Keeps what a record of a function holds, behind a write to it. */
static void keep_fields(struct walk *walk, struct place place, const struct field *before, struct value value) {
  struct value *whole = &walk->states[place.at.object].value;
  bool exact = place.at.base_width == 0 && place.at.low == place.at.high;
  if (whole->kind != VALUE_NUMBER || !exact) return;
  if (is_whole_record(walk, place))
    whole->fields = value.kind == VALUE_NUMBER ? value.fields : NULL;
  else if (before != NULL && is_scalar(place.type))
    whole->fields =
        walk_set_field(walk, before, place.at.base + place.at.low, place.type->size, value_convert(value, place.type));
}

void walk_store(struct walk *walk, struct place place, struct value value, const struct syntax *node) {
  walk_check_side(walk, place.at, node);
  if (is_whole_scalar(walk, place)) {
    walk->states[place.at.object].value = value_convert(value, place.type);
    walk->states[place.at.object].written = ranges_add(walk->memory, NULL, 0, place.type->size);
    if (walk->hot) walk->objects[place.at.object].is_set_hot = true;
    return;
  }
  if (place.type->size <= 0) return;
  check_alignment(walk, place, node);
  walk->incoming =
      value.kind == VALUE_INTEGER ? (struct content){true, false, value.low, value.high} : walk_integers(value);
  bool on_device = walk->kernel_base > 0 && place.at.object == walk->arena_object && place.at.base_width == 0;
  if (on_device && walk->incoming.known) store_integers(walk, place.at, place.type->size);
  const struct field *fields = place.at.object < 0 ? NULL : walk->states[place.at.object].value.fields;
  bool good = walk_access(walk, place.at, place.type->size, true, node);
  bool staged = (place.at.origin & ORIGIN_STAGED) != 0 && place.at.base_width == 0 && place.at.low == place.at.high;
  if (good && staged) walk_set_content(walk, place.at, place.type->size, walk->incoming);
  walk->incoming = (struct content){0};
  if (!good || walk->objects[place.at.object].kind != OBJECT_LOCAL) return;
  struct value *whole = &walk->states[place.at.object].value;
  if (whole->kind == VALUE_NUMBER) whole->origin |= value.origin;
  keep_fields(walk, place, fields, value);
}
