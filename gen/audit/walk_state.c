/* Objects and what is known of them at a moment. */
#include <stddef.h>
#include <string.h>

#include "gen/audit/walk.h"

int walk_object(struct walk *walk, enum object_kind kind, const struct variable *variable, const char *name,
                const struct type *type, int64_t size) {
  int capacity = walk->objects_capacity;
  walk->objects =
      arena_grow(walk->memory, walk->objects, walk->n_objects, &walk->objects_capacity, sizeof *walk->objects);
  if (walk->objects_capacity != capacity) {
    struct state *states = arena_alloc(walk->memory, (size_t)walk->objects_capacity * sizeof *states);
    if (walk->n_objects > 0) memcpy(states, walk->states, (size_t)walk->n_objects * sizeof *states);
    walk->states = states;
  }
  walk->objects[walk->n_objects] =
      (struct object){.kind = kind, .variable = variable, .name = name, .type = type, .size = size};
  walk->states[walk->n_objects] = (struct state){0};
  return walk->n_objects++;
}

int walk_variable(struct walk *walk, const struct variable *variable) {
  if (!variable->lasting) return walk->frame->base + variable->slot;
  int *object = &walk->lasting[variable->slot];
  if (*object < 0)
    *object = walk_object(walk, OBJECT_LASTING, variable, variable->name, variable->type, variable->type->size);
  return *object;
}

struct value walk_address(const struct walk *walk, int object) {
  struct value value = {.kind = VALUE_POINTER, .object = object, .span = walk->objects[object].size};
  return value;
}

struct snapshot {
  struct snapshot *next; /* the one given back before */
  int capacity;
  struct state states[];
};

struct state *walk_save(struct walk *walk) {
  struct snapshot *snapshot = walk->snapshots;
  if (snapshot != NULL && snapshot->capacity >= walk->n_objects) {
    walk->snapshots = snapshot->next;
  } else {
    int capacity = walk->n_objects + 64;
    snapshot = arena_alloc(walk->memory, sizeof *snapshot + (size_t)capacity * sizeof(struct state));
    snapshot->capacity = capacity;
  }
  if (walk->n_objects > 0) memcpy(snapshot->states, walk->states, (size_t)walk->n_objects * sizeof(struct state));
  return snapshot->states;
}

void walk_drop(struct walk *walk, struct state *saved) {
  struct snapshot *snapshot = (struct snapshot *)(void *)((char *)saved - offsetof(struct snapshot, states));
  snapshot->next = walk->snapshots;
  walk->snapshots = snapshot;
}

void walk_restore(struct walk *walk, const struct state *saved, int count) {
  if (count > 0) memcpy(walk->states, saved, (size_t)count * sizeof *saved);
}

struct content content_join(struct content a, struct content b) {
  if (!a.known || !b.known) return (struct content){0};
  bool same = a.low == b.low && a.high == b.high && a.exact && b.exact;
  return (struct content){true, same, a.low < b.low ? a.low : b.low, a.high > b.high ? a.high : b.high};
}

void walk_stray(struct walk *walk) {
  walk->strays = true;
  walk->map.n_contents = 0;
  for (int i = 0; i < walk->n_objects; i++) walk->states[i].content.known = false;
}

static const struct ranges *add_all(struct arena *arena, const struct ranges *set, const struct ranges *other) {
  for (int i = 0; other != NULL && set != other && i < other->count; i++)
    set = ranges_add(arena, set, other->items[i].from, other->items[i].to);
  return set;
}

void walk_merge(struct walk *walk, const struct state *other, int count, struct value condition) {
  bool either = condition.loops == 0;
  for (int i = 0; i < count; i++) {
    struct state *state = &walk->states[i];
    if (memcmp(&state->value, &other[i].value, sizeof state->value) != 0) {
      state->value = value_join(state->value, other[i].value);
      state->value.origin |= origin_of_choice(condition.origin);
    }
    if (state->written != NULL && other[i].written != NULL)
      state->content = content_join(state->content, other[i].content);
    else if (other[i].written != NULL)
      state->content = other[i].content;
    state->maybe_written =
        state->maybe_written || other[i].maybe_written || (either && state->written != other[i].written);
    state->written = either ? ranges_common(walk->memory, state->written, other[i].written)
                            : add_all(walk->memory, state->written, other[i].written);
    state->exposed = add_all(walk->memory, state->exposed, other[i].exposed);
  }
}
