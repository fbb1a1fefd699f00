/* The arena: what of it keeps its values from step to step. */
#include <string.h>

#include "gen/audit/walk.h"

/* Members of the arena that the table of states names keep their values from step to step: the whole member, as a
 * state may be cut into slices. */
static void mark_state(struct walk *walk, const struct type *arena, int64_t offset) {
  for (int i = 0; i < arena->n_members; i++) {
    const struct member *member = &arena->members[i];
    if (offset >= member->offset && offset < member->offset + member->type->size)
      map_write(walk->memory, &walk->map, member->offset, member->offset + member->type->size, NULL);
  }
}

static void mark_states(struct walk *walk, const struct type *arena) {
  const struct variable *states = tree_variable(walk->tree, "states");
  if (states == NULL || states->type->kind != TYPE_ARRAY || states->type->element->kind != TYPE_RECORD) return;
  const struct type *entry = states->type->element;
  struct constants constants = constants_of(walk->memory, states);
  for (int i = 0; i < entry->n_members; i++) {
    if (strcmp(entry->members[i].name, "offset") != 0) continue;
    for (int j = 0; j < constants.count; j++) {
      int64_t offset;
      if (constants.items[j].offset % entry->size == entry->members[i].offset &&
          constant_integer(constants.items[j].value, &offset))
        mark_state(walk, arena, offset);
    }
  }
}

bool walk_set_arena(struct walk *walk, const struct type *type, const struct syntax *node) {
  struct object *arena = &walk->objects[walk->arena_object];
  if (arena->type != NULL || type->kind != TYPE_RECORD) return false;
  bool hot = walk->hot;
  walk->hot = true; /* the hot loop rests on it */
  if (arena->size < 0)
    walk_fail(walk, FAILURE_BOUNDS, VERDICT_CANNOT_TELL, node, 0, "how large the arena is, is not known");
  else if (arena->size < type->size)
    walk_fail(walk, FAILURE_BOUNDS, VERDICT_BROKEN, node, 0, "the arena has %lld bytes, its type %lld",
              (long long)arena->size, (long long)type->size);
  walk->hot = hot;
  arena->type = type;
  arena->size = type->size;
  map_add_padding(walk->memory, &walk->map, type, 0);
  mark_states(walk, type);
  return true;
}
