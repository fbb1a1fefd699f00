/* Arrays of weights that steps write in part: the rest keeps the numbers of the start. */
#include "gen/audit/interp/interp.h"

void interp_note_update(struct interp *interp, const struct pending_access *access) {
  if (interp->taking_step == 0 || interp->lasting == NULL) return;
  const struct ranges **set = access->is_exact || access->has_gaps ? &interp->updated : &interp->perhaps_updated;
  const int64_t to = access->has_gaps ? access->from + 1 : access->to; /* some of it, and not the rest */
  *set = ranges_add(interp->memory, *set, access->from, to);
}

/* Whether some of these bytes are in a set. */
static bool has_some(const struct ranges *set, int64_t from, int64_t to) {
  for (int i = 0; set != NULL && i < set->count; i++)
    if (set->items[i].from < to && set->items[i].to > from) return true;
  return false;
}

bool interp_is_open_update(const struct interp *interp, const struct pending_access *access) {
  return access->is_write && !access->is_exact && !access->has_gaps && interp->taking_step > 0 &&
         has_some(interp->lasting, access->from, access->to);
}

static void check_array(struct interp *interp, const char *name, const struct type *type, int64_t from) {
  int64_t missing, end = from + type->size;
  if (has_some(interp->perhaps_updated, from, end)) return;
  if (!has_some(interp->updated, from, end) || ranges_cover(interp->updated, from, end, &missing)) return;
  const struct function *root = tree_function(interp->tree, interp->audit->root);
  const struct syntax at = {.where = root->where};
  interp->in_step_path = true;
  interp_fail(interp, FAILURE_PARTIAL, VERDICT_BROKEN, &at, 0, "a step writes a part of '%s', but not its element %lld",
              name, (long long)((missing - from) / type->element->size));
}

/* The arrays in records, which name each tensor: an array of all of them has gaps in between. */
static void check_members(struct interp *interp, const struct type *record, int64_t offset, bool is_inner) {
  for (int i = 0; i < record->n_members; i++) {
    const struct member *member = &record->members[i];
    const struct type *type = member->type;
    const int64_t from = offset + member->offset;
    int64_t missing;
    if (member->offset < 0 || type->size <= 0 || !has_some(interp->lasting, from, from + type->size)) continue;
    const bool is_array = type->kind == TYPE_ARRAY && type->element->kind != TYPE_RECORD;
    if (is_array && is_inner && ranges_cover(interp->lasting, from, from + type->size, &missing))
      check_array(interp, member->name, type, from);
    if (type->kind == TYPE_RECORD) check_members(interp, type, from, is_inner || member->name[0] != '\0');
    const bool repeats = type->kind == TYPE_ARRAY && type->element->kind == TYPE_RECORD;
    for (int64_t j = 0; repeats && j < type->count; j++)
      check_members(interp, type->element, from + j * type->element->size, true);
  }
}

void interp_check_updates(struct interp *interp) {
  const struct type *arena = interp->objects[interp->arena_object].type;
  if (arena != NULL && arena->kind == TYPE_RECORD && interp->audit->root != NULL)
    check_members(interp, arena, 0, false);
}
