/* Writes outside of the step: what lasts from step to step is written by steps. */
#include "gen/audit/interp/interp.h"
#include "gen/audit/program/externals.h"

#include <string.h>

static bool find_gather(struct syntax *node, void *found) {
  const bool calls = node->kind == SYNTAX_CALL && node->function != NULL;
  if (calls && strcmp(node->function->name, "accel_start_all_gather") == 0) *(bool *)found = true;
  return !*(bool *)found;
}

/* Whether a function makes whole where it is what each rank has its part of: it may first change that part. */
static bool gathers_in_place(const struct function *function) {
  int *known = &function->role->gathers_in_place;
  if (*known == 0) {
    bool found = false;
    syntax_visit(function->body, find_gather, &found);
    *known = found ? 1 : -1;
  }
  return *known > 0;
}

/* Whether a function that is being followed exchanges such memory among ranks. */
static bool is_exchanged(const struct interp *interp) {
  for (const struct frame *frame = interp->frame; frame != NULL; frame = frame->caller)
    if (frame->function->role->exchanges_lasting || gathers_in_place(frame->function)) return true;
  return false;
}

/* Whether the runtime does what `node` says, or it goes with an exchange among ranks. */
static bool is_of_runtime(const struct interp *interp, const struct syntax *node) {
  const struct function *callee = node->kind == SYNTAX_CALL ? node->function : NULL;
  if (callee == NULL || callee->body != NULL || !external_is_runtime(callee->name)) return is_exchanged(interp);
  enum effect effect = external_effect(callee->name);
  if (!interp->has_looped) return true; /* what training starts from */
  if (effect == EFFECT_COLLECTIVE) interp->frame->function->role->exchanges_lasting = true;
  return effect == EFFECT_COLLECTIVE || effect == EFFECT_RUNTIME || effect == EFFECT_BATCH || is_exchanged(interp);
}

/* A state of one number, which the program sets before it does anything else: a loss scale. */
static bool starts_number(const struct interp *interp, const struct syntax *node) {
  if (interp->has_looped || node->kind != SYNTAX_INDEX) return false;
  const struct type *type = syntax_bare(node->parts[0])->type;
  return type->kind == TYPE_ARRAY && type->count == 1;
}

void interp_check_outside(struct interp *interp, int64_t from, int64_t to, const struct syntax *node) {
  const struct ranges *lasting = interp->audit->root == NULL ? NULL : interp->lasting;
  for (int i = 0; lasting != NULL && i < lasting->count && interp->taking_step == 0; i++) {
    if (from >= lasting->items[i].to || to <= lasting->items[i].from) continue;
    if (is_of_runtime(interp, node) || starts_number(interp, node)) continue;
    interp_fail(interp, FAILURE_OUTSIDE, VERDICT_BROKEN, node, 0, "'%s' writes what lasts from step to step",
                interp_spell(interp, node));
    return;
  }
}

void interp_fail_outside(struct interp *interp, struct value at, const struct syntax *node) {
  if (interp->audit->root == NULL || interp->in_step_path || (at.origin & ORIGIN_REPORTED) != 0) return;
  const bool certain = at.object >= 0 && at.slot_size >= 0 && interp_imprecision(interp, at) == 0;
  if (!certain && !interp_is_own(interp, node->where)) return; /* the runtime's text is taken for right */
  interp_fail(interp, FAILURE_OUTSIDE, certain ? VERDICT_BROKEN : VERDICT_CANNOT_TELL, node, at.loops | at.blame,
              certain ? "'%s' writes beyond the end or before the start of %s"
                      : "'%s' may write beyond the end or before the start of %s",
              interp_spell(interp, node), interp_slot_name(interp, at));
}
