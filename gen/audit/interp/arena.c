/* The arena: which of its members persist from step to step. */
#include <string.h>

#include "gen/audit/interp/interp.h"

/* Members of the arena that the table of states names persist from step to step: the whole member, as a
 * state may be cut into slices. */
static void mark_state(struct interp *interp, const struct type *arena, int64_t offset) {
  for (int i = 0; i < arena->n_members; i++) {
    const struct member *member = &arena->members[i];
    if (offset < member->offset || offset >= member->offset + member->type->size) continue;
    const int64_t end = member->offset + member->type->size;
    interp->lasting = ranges_add(interp->memory, interp->lasting, member->offset, end);
    map_write(interp->memory, &interp->map, member->offset, end, NULL);
  }
}

/* Whether the offset of a state is a sum: it is on the host, after what that has of the arena, and not where a device
 * has other members. */
static bool is_after_arena(const struct syntax *offset) {
  return offset->kind == SYNTAX_BINARY;
}

static void mark_states(struct interp *interp, const struct type *arena) {
  const struct variable *states = tree_variable(interp->tree, "states");
  if (states == NULL || states->type->kind != TYPE_ARRAY || states->type->element->kind != TYPE_RECORD) return;
  const struct type *entry = states->type->element;
  struct constants constants = constants_of(interp->memory, states);
  for (int i = 0; i < entry->n_members; i++) {
    if (strcmp(entry->members[i].name, "offset") != 0) continue;
    for (int j = 0; j < constants.count; j++) {
      int64_t offset;
      if (constants.items[j].offset % entry->size == entry->members[i].offset &&
          !is_after_arena(constants.items[j].value) && constant_integer(constants.items[j].value, &offset))
        mark_state(interp, arena, offset);
    }
  }
}

bool interp_set_arena(struct interp *interp, const struct type *type, const struct syntax *node) {
  struct object *arena = &interp->objects[interp->arena_object];
  if (arena->type != NULL || type->kind != TYPE_RECORD) return false;
  bool was_in_step_path = interp->in_step_path;
  interp->in_step_path = true; /* the step path rests on it */
  if (arena->size < 0)
    interp_fail(interp, FAILURE_BOUNDS, VERDICT_CANNOT_TELL, node, 0, "how large the arena is, is not known");
  else if (arena->size < type->size)
    interp_fail(interp, FAILURE_BOUNDS, VERDICT_BROKEN, node, 0, "the arena has %lld bytes, its type %lld",
                (long long)arena->size, (long long)type->size);
  interp->in_step_path = was_in_step_path;
  arena->type = type;
  arena->size = type->size;
  map_add_padding(interp->memory, &interp->map, type, 0);
  mark_states(interp, type);
  return true;
}
