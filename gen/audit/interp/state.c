/* Objects and what is known of them at a moment. */
#include <stddef.h>
#include <string.h>

#include "gen/audit/interp/interp.h"

int interp_object(struct interp *interp, enum object_kind kind, const struct variable *variable, const char *name,
                  const struct type *type, int64_t size) {
  int capacity = interp->objects_capacity;
  interp->objects = arena_grow(interp->memory, interp->objects, interp->n_objects, &interp->objects_capacity,
                               sizeof *interp->objects);
  if (interp->objects_capacity != capacity) {
    struct state *states = arena_alloc(interp->memory, (size_t)interp->objects_capacity * sizeof *states);
    if (interp->n_objects > 0) memcpy(states, interp->states, (size_t)interp->n_objects * sizeof *states);
    interp->states = states;
  }
  interp->objects[interp->n_objects] =
      (struct object){.kind = kind, .variable = variable, .name = name, .type = type, .size = size};
  interp->states[interp->n_objects] = (struct state){0};
  return interp->n_objects++;
}

int interp_variable(struct interp *interp, const struct variable *variable) {
  if (!variable->is_static) return interp->frame->base + variable->slot;
  int *object = &interp->statics[variable->slot];
  if (*object < 0)
    *object = interp_object(interp, OBJECT_STATIC, variable, variable->name, variable->type, variable->type->size);
  return *object;
}

struct value interp_address(const struct interp *interp, int object) {
  struct value value = {.kind = VALUE_POINTER, .object = object, .slot_size = interp->objects[object].size};
  return value;
}

const struct ranges *interp_all_bytes(struct interp *interp, int64_t size) {
  if (size <= 0) return NULL;
  const struct ranges **known = &interp->all_bytes[size % SIZES];
  if (*known == NULL || (*known)->items[0].to != size) *known = ranges_add(interp->memory, NULL, 0, size);
  return *known;
}

struct snapshot {
  struct snapshot *next; /* the one given back before */
  int capacity;
  struct in_flight in_flight;
  struct state states[];
};

static struct snapshot *snapshot_of(const struct state *saved) {
  return (struct snapshot *)(void *)((char *)(uintptr_t)saved - offsetof(struct snapshot, states));
}

struct state *interp_save(struct interp *interp) {
  struct snapshot *snapshot = interp->snapshots;
  if (snapshot != NULL && snapshot->capacity >= interp->n_objects) {
    interp->snapshots = snapshot->next;
  } else {
    int capacity = interp->n_objects + 64;
    snapshot = arena_alloc(interp->memory, sizeof *snapshot + (size_t)capacity * sizeof(struct state));
    snapshot->capacity = capacity;
  }
  if (interp->n_objects > 0) memcpy(snapshot->states, interp->states, (size_t)interp->n_objects * sizeof(struct state));
  snapshot->in_flight = interp->in_flight;
  return snapshot->states;
}

void interp_drop(struct interp *interp, struct state *saved) {
  struct snapshot *snapshot = snapshot_of(saved);
  snapshot->next = interp->snapshots;
  interp->snapshots = snapshot;
}

void interp_restore(struct interp *interp, const struct state *saved, int count) {
  interp->in_flight = snapshot_of(saved)->in_flight;
  if (count > 0) memcpy(interp->states, saved, (size_t)count * sizeof *saved);
}

struct content content_join(struct content a, struct content b) {
  if (!a.known || !b.known) return (struct content){0};
  bool same = a.low == b.low && a.high == b.high && a.exact && b.exact;
  return (struct content){true, same, a.low < b.low ? a.low : b.low, a.high > b.high ? a.high : b.high,
                          a.grouping == b.grouping ? a.grouping : NULL};
}

void interp_unknown_write(struct interp *interp) {
  interp->has_unknown_write = true;
  interp_spoil_record(interp);
  interp->map.n_contents = 0;
  for (int i = 0; i < interp->n_objects; i++) interp->states[i].content.known = false;
}

static const struct ranges *add_all(struct arena *arena, const struct ranges *set, const struct ranges *other) {
  for (int i = 0; other != NULL && set != other && i < other->count; i++)
    set = ranges_add(arena, set, other->items[i].from, other->items[i].to);
  return set;
}

static bool same_path(const struct path *a, const struct path *b) {
  for (; a != b; a = a->parent, b = b->parent)
    if (a == NULL || b == NULL || a->record != b->record || a->member != b->member || a->index != b->index)
      return false;
  return true;
}

/* Pointers to one place are the same, whenever either was made. */
static bool same_value(const struct value *a, const struct value *b) {
  if (a->kind != b->kind || a->origin != b->origin || a->blame != b->blame || a->loops != b->loops) return false;
  if (a->low != b->low || a->high != b->high || a->step != b->step || a->fields != b->fields) return false;
  if (a->is_known != b->is_known || memcmp(&a->real, &b->real, sizeof a->real) != 0) return false;
  return a->object == b->object && a->base == b->base && a->slot_size == b->slot_size &&
         a->base_width == b->base_width && a->linear == b->linear && form_equal(a->form, b->form) &&
         same_path(a->path, b->path);
}

void interp_join(struct interp *interp, const struct state *other, int count, struct value condition) {
  bool either = condition.loops == 0;
  interp_agree(interp, &snapshot_of(other)->in_flight);
  for (int i = 0; i < count; i++) {
    struct state *state = &interp->states[i];
    if (!same_value(&state->value, &other[i].value)) {
      state->value = value_join(state->value, other[i].value);
      state->value.origin |= origin_of_choice(condition.origin);
    }
    if (state->written != NULL && other[i].written != NULL)
      state->content = content_join(state->content, other[i].content);
    else if (other[i].written != NULL)
      state->content = other[i].content;
    if (other[i].has_stored)
      state->stored = state->has_stored ? content_join(state->stored, other[i].stored) : other[i].stored;
    state->has_stored |= other[i].has_stored;
    state->maybe_written =
        state->maybe_written || other[i].maybe_written || (either && state->written != other[i].written);
    state->written = either ? ranges_common(interp->memory, state->written, other[i].written)
                            : add_all(interp->memory, state->written, other[i].written);
    state->exposed = add_all(interp->memory, state->exposed, other[i].exposed);
  }
}
