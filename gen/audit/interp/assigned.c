/* What a loop assigns, and what of it is known after an iteration. */
#include "gen/audit/interp/loop.h"

struct assigned_search {
  struct interp *interp;
  struct note *note;
};

static bool collect_assigned(struct syntax *node, void *data) {
  struct assigned_search *search = data;
  struct note *note = search->note;
  bool points = node->kind == SYNTAX_UNARY && node->operation == OPERATOR_ADDRESS;
  if (node->kind != SYNTAX_ASSIGN && node->kind != SYNTAX_INCREMENT && !points) return true;
  struct syntax *target = syntax_bare(node->parts[0]);
  while (target->kind == SYNTAX_MEMBER || target->kind == SYNTAX_INDEX) target = syntax_bare(target->parts[0]);
  bool record = target->kind == SYNTAX_VARIABLE && target->type->kind == TYPE_RECORD;
  if (!record && (points || target != syntax_bare(node->parts[0]))) return true;
  if (target->kind != SYNTAX_VARIABLE) return true;
  for (int i = 0; i < note->n_assigned; i++)
    if (note->assigned[i] == target->variable) return true;
  note->assigned = arena_grow(search->interp->memory, note->assigned, note->n_assigned, &note->assigned_capacity,
                              sizeof *note->assigned);
  note->assigned[note->n_assigned++] = target->variable;
  return true;
}

void interp_find_assigned(struct interp *interp, struct syntax *loop, struct note *note) {
  if (note->has_assigned) return;
  note->has_assigned = true;
  struct assigned_search search = {interp, note};
  for (int i = 0; i < loop->n_parts; i++)
    if (loop->kind != SYNTAX_FOR || i > 0) syntax_visit(loop->parts[i], collect_assigned, &search);
}

struct reset_search {
  const struct variable *variable;
  bool is_reset;
};

/* Declared in the body, or set where a loop in it begins: an iteration knows nothing of the one before. */
static bool find_reset(struct syntax *node, void *data) {
  struct reset_search *search = data;
  struct syntax *first = node->kind == SYNTAX_FOR && node->parts[0] != NULL ? syntax_bare(node->parts[0]) : NULL;
  bool sets = first != NULL && first->kind == SYNTAX_ASSIGN && first->operation == OPERATOR_NONE &&
              syntax_bare(first->parts[0])->kind == SYNTAX_VARIABLE &&
              syntax_bare(first->parts[0])->variable == search->variable;
  search->is_reset |= sets || (node->kind == SYNTAX_DECLARE && node->variable == search->variable);
  return !search->is_reset;
}

bool interp_carries_integers(struct syntax *loop, const struct note *note, const struct variable *counter) {
  for (int i = 0; i < note->n_assigned; i++) {
    struct reset_search search = {note->assigned[i], false};
    if (note->assigned[i] == counter || note->assigned[i]->type->kind != TYPE_INTEGER) continue;
    syntax_visit(loop->parts[3], find_reset, &search);
    if (!search.is_reset) return true;
  }
  return false;
}

struct value *interp_assigned_values(struct interp *interp, const struct note *note) {
  struct value *values = arena_alloc(interp->memory, ((size_t)note->n_assigned + 1) * sizeof *values);
  for (int i = 0; i < note->n_assigned; i++)
    values[i] = interp->states[interp_variable(interp, note->assigned[i])].value;
  return values;
}

bool interp_widen_assigned(const struct note *note, struct value *before, const struct value *now) {
  bool within = true;
  for (int i = 0; i < note->n_assigned; i++) {
    if (before[i].kind != VALUE_INTEGER || now[i].kind != VALUE_INTEGER) continue;
    within = within && now[i].low >= before[i].low && now[i].high <= before[i].high;
    if (now[i].low < before[i].low) before[i].low = now[i].low;
    if (now[i].high > before[i].high) before[i].high = now[i].high;
    before[i].origin |= now[i].origin | ORIGIN_UNTRACKED;
    before[i].loops = 0;
    before[i].step = 0;
    before[i].linear = NULL;
    before[i].form = NULL;
    before[i].blame = BLAME_ALWAYS;
  }
  return within;
}

void interp_take_assigned(struct interp *interp, const struct note *note, const struct variable *counter,
                          const struct value *values) {
  interp_forget_assigned(interp, note, counter);
  for (int i = 0; values != NULL && i < note->n_assigned; i++) {
    int object = interp_variable(interp, note->assigned[i]);
    bool follows = note->assigned[i] != counter && interp->objects[object].kind != OBJECT_STATIC;
    if (follows && values[i].kind == VALUE_INTEGER) interp->states[object].value = values[i];
  }
}

void interp_forget_assigned(struct interp *interp, const struct note *note, const struct variable *counter) {
  for (int i = 0; i < note->n_assigned; i++) {
    const struct variable *variable = note->assigned[i];
    if (variable == counter || interp->objects[interp_variable(interp, variable)].kind == OBJECT_STATIC) continue;
    struct state *state = &interp->states[interp_variable(interp, variable)];
    if (state->value.kind == VALUE_NOTHING) continue;
    unsigned origin = state->value.origin;
    if (state->value.kind == VALUE_NUMBER)
      state->value = value_number(origin);
    else
      state->value = value_of_type(variable->type, origin | (interp->in_step_path ? ORIGIN_UNTRACKED : 0));
  }
}

static bool is_assigned(const struct note *note, const struct variable *variable) {
  for (int i = 0; i < note->n_assigned; i++)
    if (note->assigned[i] == variable) return true;
  return false;
}

void interp_forget_assumed(struct interp *interp, const struct note *note, const struct state *before, int count) {
  for (int i = 0; i < count; i++) {
    struct value *value = &interp->states[i].value;
    const struct value *was = &before[i].value;
    if (value->kind != VALUE_INTEGER || was->kind != VALUE_INTEGER) continue;
    if (value->low <= was->low && value->high >= was->high) continue;
    if (interp->objects[i].variable == NULL || is_assigned(note, interp->objects[i].variable)) continue;
    int64_t low = value->low < was->low ? value->low : was->low,
            high = value->high > was->high ? value->high : was->high;
    bool narrowed = value->low >= was->low && value->high <= was->high;
    if (narrowed) *value = *was;
    value->low = low;
    value->high = high;
  }
}
