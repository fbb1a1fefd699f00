/* Directives: how a region is followed to list what it accesses. */
#include <string.h>

#include "gen/audit/interp/region.h"

void interp_region_barrier(struct interp *interp, const struct syntax *node) {
  struct region *region = interp->region;
  if (region == NULL || !region->is_team || region->grid.is_one) return;
  if (region->share.doer != DOER_ALL || interp->guards != 0)
    interp_region_lost(interp, node, "a barrier that not all threads may reach");
  else
    region->phase++;
}

/* The variables of the clauses are each thread's own; those of a reduction are used for nothing else. */
static void take_names(struct interp *interp, struct syntax *node, const struct directive *directive) {
  for (int i = 0; i < directive->n_names; i++) {
    const struct variable *variable = interp_region_variable(node, directive->names[i].name);
    if (variable == NULL) continue;
    const int object = interp_variable(interp, variable);
    interp->objects[object].region = interp->region->number;
    if (interp->objects[object].kind != OBJECT_LOCAL) interp_region_lost(interp, node, "a clause of what is not local");
    if (directive->names[i].operation == NULL) continue;
    if (interp_region_is_update(node, variable, directive->names[i].operation)) continue;
    interp->region->wrong = node;
    interp->region->wrong_name = &directive->names[i];
  }
}

/* At the end of a loop in a team, what its threads have is combined, by one after the other: the variable is shared
 * again. */
static void combine_names(struct interp *interp, struct syntax *node, const struct directive *directive) {
  struct region *region = interp->region;
  for (int i = 0; i < directive->n_names; i++) {
    const struct variable *variable = interp_region_variable(node, directive->names[i].name);
    if (variable == NULL || directive->names[i].operation == NULL) continue;
    const int object = interp_variable(interp, variable);
    interp->objects[object].region = 0;
    region->guard = GUARD_ATOMIC;
    interp_region_access(interp, interp_address(interp, object), variable->type->size, true, node);
    region->guard = GUARD_NONE;
  }
}

/* The loops of a directive, which are nested in each other without anything between them. Their counters are each
 * thread's own. */
static struct share share_of(struct interp *interp, struct syntax *loop, int depth) {
  struct share share = {.doer = DOER_LOOP, .number = ++interp->region->n_shares};
  for (int i = 0; i < depth; i++) {
    while (loop->kind == SYNTAX_BLOCK && loop->n_parts == 1) loop = loop->parts[0];
    struct counting counting = {0};
    if (share.n_loops == REGION_MOST_LOOPS || !interp_read_counting(interp, loop, &counting)) {
      interp_region_lost(interp, loop, "a loop that does not count");
      break;
    }
    const int object = interp_variable(interp, counting.counter);
    if (interp->objects[object].kind == OBJECT_LOCAL) interp->objects[object].region = interp->region->number;
    share.symbols[share.n_loops] = -1;
    share.loops[share.n_loops++] = loop;
    loop = loop->parts[3];
  }
  return share;
}

static enum flow follow(struct interp *interp, struct syntax *node, const struct directive *directive);

static enum flow follow_share(struct interp *interp, struct syntax *node, const struct directive *directive,
                              struct share share) {
  struct region *region = interp->region;
  const struct share outer = region->share;
  region->share = share;
  const enum flow flow = follow(interp, node, directive->next);
  region->share = outer;
  if (node != region->node) combine_names(interp, node, directive);
  if (!directive->nowait && share.doer != DOER_MASTER && outer.doer == DOER_ALL && region->is_team)
    interp_region_barrier(interp, node);
  return flow;
}

static enum flow follow_guarded(struct interp *interp, struct syntax *node, const struct directive *directive) {
  struct region *region = interp->region;
  const enum guard_kind guard = region->guard;
  const char *lock = region->lock;
  region->guard = (directive->parts & DIRECTIVE_ATOMIC) != 0 ? GUARD_ATOMIC : GUARD_CRITICAL;
  region->lock = directive->text;
  const struct syntax *of = syntax_bare(node);
  const bool updates = of->kind == SYNTAX_ASSIGN || of->kind == SYNTAX_INCREMENT;
  const bool is_plain = strstr(directive->text, "read") == NULL && strstr(directive->text, "capture") == NULL;
  region->atomic = updates && is_plain ? of->parts[0] : NULL;
  const enum flow flow = follow(interp, node, directive->next);
  region->atomic = NULL;
  region->guard = guard;
  region->lock = lock;
  return flow;
}

/* A statement of a region, from one of its directives on. */
static enum flow follow(struct interp *interp, struct syntax *node, const struct directive *directive) {
  if (directive == NULL) return interp_statement_alone(interp, node);
  struct region *region = interp->region;
  const unsigned parts = directive->parts;
  if (directive->unknown != NULL) interp_region_lost(interp, node, "a directive or a clause");
  if ((parts & DIRECTIVE_BARRIER) != 0) interp_region_barrier(interp, node);
  if ((parts & (DIRECTIVE_ATOMIC | DIRECTIVE_CRITICAL)) != 0) return follow_guarded(interp, node, directive);
  const bool divides = (parts & DIRECTIVE_LOOP) != 0 || (!region->is_team && node == region->node);
  if (region->share.doer == DOER_ALL && node == region->node) take_names(interp, node, directive);
  if (region->share.doer != DOER_ALL || ((parts & DIRECTIVE_PARALLEL) != 0 && node != region->node))
    return follow(interp, node, directive->next); /* in one thread */
  if (divides && node->kind == SYNTAX_FOR) {
    if (node != region->node) take_names(interp, node, directive);
    return follow_share(interp, node, directive, share_of(interp, node, directive->collapse));
  }
  if ((parts & (DIRECTIVE_SINGLE | DIRECTIVE_MASTER)) != 0) {
    const enum doer doer = (parts & DIRECTIVE_SINGLE) != 0 ? DOER_ONE : DOER_MASTER;
    return follow_share(interp, node, directive, (struct share){.doer = doer, .number = ++region->n_shares});
  }
  return follow(interp, node, directive->next);
}

void interp_region_list(struct interp *interp, struct syntax *node, const struct directive *directive,
                        struct region *region) {
  const struct interp before = *interp;
  const int n_symbols = interp->symbols.count;
  const struct frame frame = *interp->frame;
  struct state *states = interp_save(interp);
  const struct map_contents contents = map_copy_contents(interp->forms, &interp->map);
  region->first_object = interp->n_objects;
  region->first_parameter = interp->first_parameter;
  region->n_shared = interp->n_objects;
  region->shared = arena_alloc(interp->forms, ((size_t)region->n_shared + 1) * sizeof *region->shared);
  region->thread = -1;
  interp->region = region;
  interp->guards = 0;
  interp_region_take_shared(interp);
  follow(interp, node, directive);
  interp->region = NULL;
  interp->symbols.count = n_symbols;
  map_take_contents(interp->memory, &interp->map, contents);
  interp_restore(interp, states, region->first_object);
  interp_drop(interp, states);
  *interp->frame = frame;
  interp->n_objects = before.n_objects;
  interp->guards = before.guards;
  interp->iterations = before.iterations;
  interp->budget = before.budget;
  interp->n_loops = before.n_loops;
  interp->doubts = before.doubts;
  interp->incoming = before.incoming;
  interp->has_unknown_write = before.has_unknown_write;
  interp->untracked = before.untracked;
  interp->is_spoiled = before.is_spoiled;
  interp->rows = before.rows;
  interp->sorted_index = before.sorted_index;
  interp->has_left = before.has_left;
  interp->left_with = before.left_with;
  interp->in_flight = before.in_flight;
  interp->n_kernels = before.n_kernels;
}

static void check_region(struct interp *interp, struct syntax *node, const struct directive *directive) {
  const bool is_team = (directive->parts & DIRECTIVE_PARALLEL) != 0;
  interp->n_regions++;
  for (int detail = 0; detail <= MOST_DETAIL; detail++) {
    struct region region = {
        .number = ++interp->region_numbers, .is_team = is_team, .detail = detail, .parts = 1, .node = node};
    const struct arena_mark before = arena_mark(interp->forms);
    interp_region_list(interp, node, directive, &region);
    const bool last = detail == MOST_DETAIL || region.lost != NULL;
    const bool ends = last || interp_region_find_races(interp, &region, false) == 0;
    const bool is_open = ends && interp_region_find_races(interp, &region, true) > 0;
    node->note->has_open_races |= is_open;
    interp->has_open_races |= is_open;
    arena_release(interp->forms, before);
    if (ends) return;
  }
}

/* The lanes of a loop whose iterations a team divides are compared with the team's. */
static bool is_checked(const struct interp *interp, const struct directive *directive) {
  if ((directive->parts & DIRECTIVE_PARALLEL) != 0) return true;
  return (directive->parts & DIRECTIVE_SIMD) != 0 && ((directive->parts & DIRECTIVE_LOOP) == 0 || interp->teams == 0);
}

enum flow interp_directive(struct interp *interp, struct syntax *node) {
  const struct directive *directive = node->note->directive;
  if (interp->region != NULL) return follow(interp, node, directive);
  const struct directive *opens = directive;
  while (opens != NULL && !is_checked(interp, opens)) opens = opens->next;
  if (opens != NULL && (interp->rehearsals == 0 || node->note->has_open_races)) check_region(interp, node, opens);
  const int team = opens != NULL && (opens->parts & DIRECTIVE_PARALLEL) != 0;
  interp->teams += team;
  const enum flow flow = interp_statement_alone(interp, node);
  interp->teams -= team;
  return flow;
}
