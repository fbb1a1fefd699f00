/* Which accesses of a region race. */
#include <string.h>

#include "gen/audit/interp/region.h"

/* Whether two accesses may be done by different threads with no barrier between them. */
bool interp_region_may_meet(const struct access *a, const struct access *b) {
  if (!a->is_write && !b->is_write) return false;
  if (a->phase != b->phase) return false;
  if (a->guard == GUARD_ATOMIC && b->guard == GUARD_ATOMIC) return false;
  if (a->guard == GUARD_CRITICAL && b->guard == GUARD_CRITICAL && strcmp(a->lock, b->lock) == 0) return false;
  if (a->share.doer == DOER_MASTER && b->share.doer == DOER_MASTER) return false;
  return a->share.doer != DOER_ONE || b->share.doer != DOER_ONE || a->share.number != b->share.number;
}

static bool is_of(const struct share *share, int symbol) {
  for (int i = 0; i < share->n_loops; i++)
    if (share->symbols[i] == symbol) return true;
  return false;
}

/* The difference of the two iterations along a loop that is divided, or of two threads. */
static bool add_difference(struct equation *equation, const struct access *a, const struct access *b, int which) {
  const int x = a->share.symbols[which], y = b->share.symbols[which];
  const int64_t of_a = x >= 0 ? form_factor(a->at, x) : 0, of_b = y >= 0 ? form_factor(b->at, y) : 0;
  const struct span s = a->iterations[which], t = b->iterations[which];
  if (of_a == of_b)
    return equation_add(equation,
                        (struct unknown){of_a, {bounded_add(s.low, -t.high), bounded_add(s.high, -t.low)}, which, 0});
  return equation_add(equation, (struct unknown){of_a, s, which, 1}) &&
         equation_add(equation, (struct unknown){-of_b, t, which, -1});
}

/* The other terms of an access; of a symbol that all share, both accesses' together. */
static bool add_terms(const struct region *region, struct equation *equation, const struct access *a,
                      const struct access *b, bool is_bound, int sign) {
  bool added = true;
  for (int i = 0; i < a->at->n_terms && added; i++) {
    const int symbol = a->at->terms[i].symbol;
    if (is_bound && is_of(&a->share, symbol)) continue;
    int64_t factor = sign * a->at->terms[i].factor;
    const bool is_shared = symbol < region->n_before;
    const int64_t other = is_shared ? form_factor(b->at, symbol) : 0;
    if (is_shared && other != 0 && sign < 0) continue; /* with a's */
    if (is_shared) factor -= sign * other;
    if (factor != 0) added = equation_add(equation, (struct unknown){factor, a->spans[i], -1, 0});
  }
  return added;
}

/* Whether two accesses may reach a byte in common, in different iterations where both are of one loop, or by different
 * threads. Of two parameters, b's begins so many bytes after a's. */
static enum solution overlap(const struct region *region, const struct access *a, const struct access *b,
                             int64_t shift) {
  if (a->reach.low > bounded_add(b->reach.high, shift) || bounded_add(b->reach.low, shift) > a->reach.high)
    return SOLUTION_NONE;
  struct equation equation = {.count = 0};
  const bool same = a->share.doer == b->share.doer && a->share.number == b->share.number;
  equation.is_bound = same && a->share.n_loops > 0 && b->share.n_loops > 0;
  bool added = true;
  for (int i = 0; i < a->share.n_loops && equation.is_bound && added; i++) added = add_difference(&equation, a, b, i);
  added = added && add_terms(region, &equation, a, b, equation.is_bound, 1) &&
          add_terms(region, &equation, b, a, equation.is_bound, -1);
  const int64_t distance = bounded_add(bounded_add(a->at->constant, -b->at->constant), -shift);
  equation.sum = (struct span){bounded_add(-(a->size - 1), -distance), bounded_add(b->size - 1, -distance)};
  return added ? equation_solve(&equation) : SOLUTION_NOT_KNOWN;
}

/* What cannot be decided for all iterations of the loops around a region at once may be decided for fewer. */
void interp_region_fail(struct interp *interp, enum verdict verdict, const struct syntax *node, const char *message) {
  const uint64_t loops = verdict == VERDICT_BROKEN ? 0 : ((uint64_t)1 << interp->n_loops) - 1;
  interp_fail(interp, FAILURE_RACE, verdict, node, loops, "%s", message);
}

void interp_region_report(struct interp *interp, const struct region *region, const struct access *a,
                          const struct access *b, const char *who, bool certain) {
  const struct access *write = a->is_write ? a : b, *other = a->is_write ? b : a;
  const char *may = certain ? "is " : "may be ";
  const char *what = interp_spell(interp, write->node);
  const char *of = interp->objects[write->object].name;
  interp_region_fail(interp, certain ? VERDICT_BROKEN : VERDICT_CANNOT_TELL, write->node,
                     arena_printf(interp->memory,
                                  "'%s' writes bytes of %s that %s%s by %s at the same time, at line %d%s", what, of,
                                  may, other->is_write ? "written" : "read", who, other->node->where.line,
                                  region->is_team ? "" : " (simd)"));
}

/* Who does the other of two accesses. */
static const char *other_of(const struct access *a, const struct access *b) {
  const bool of_loop = a->share.doer == DOER_LOOP && b->share.doer == DOER_LOOP && a->share.number == b->share.number;
  return of_loop ? "another iteration" : "another thread";
}

/* A parameter of the current kernel, by its number; -1: it is another object. */
static int parameter_of(const struct interp *interp, int object) {
  const int number = object - interp->first_parameter;
  const bool is_one = interp->in_kernel && interp->objects[object].kind == OBJECT_PARAMETER;
  return is_one && number >= 0 && number < 64 ? number : -1;
}

/* What callers must see to: that two parameters are not the same memory, nor one of them an object of static storage
 * that the kernel uses by its name. */
static bool note_sharing(struct interp *interp, const struct access *a, const struct access *b) {
  struct sharing *sharing = interp->sharing;
  const int x = parameter_of(interp, a->object), y = parameter_of(interp, b->object);
  if (x >= 0 && y >= 0) {
    sharing->both[x] |= (uint64_t)1 << y;
    sharing->both[y] |= (uint64_t)1 << x;
    return true;
  }
  const int parameter = x >= 0 ? x : y, other = x >= 0 ? b->object : a->object;
  const enum object_kind kind = interp->objects[other].kind;
  if (parameter < 0 || (kind != OBJECT_STATIC && kind != OBJECT_ARENA)) return false;
  const struct named_object named = {parameter, other};
  for (int i = 0; i < sharing->named.count; i++)
    if (sharing->named.items[i].parameter == parameter && sharing->named.items[i].object == other) return false;
  ARENA_PUSH(interp->memory, sharing->named, named);
  return false;
}

bool interp_region_races(const struct sharing *sharing, int x, int y, int64_t shift) {
  for (int i = 0; i < sharing->regions.count; i++) {
    const struct region *region = &sharing->regions.items[i];
    for (int j = 0; j < region->accesses.count; j++)
      for (int k = 0; k < region->accesses.count; k++) {
        const struct access *a = &region->accesses.items[j], *b = &region->accesses.items[k];
        if (a->object != region->first_parameter + x || b->object != region->first_parameter + y) continue;
        if (interp_region_may_meet(a, b) && overlap(region, a, b, shift) != SOLUTION_NONE) return true;
      }
  }
  return false;
}

/* A region's accesses to parameters, for as long as the kernel may be called. */
static void keep(struct interp *interp, const struct region *region) {
  struct region kept = *region;
  kept.accesses.items = NULL;
  kept.accesses.count = kept.accesses.capacity = 0;
  for (int i = 0; i < region->accesses.count; i++) {
    struct access access = region->accesses.items[i];
    if (interp->objects[access.object].kind != OBJECT_PARAMETER) continue;
    access.at = form_sum(interp->memory, access.at, access.at, 0);
    access.spans = memcpy(arena_alloc(interp->memory, ((size_t)access.at->n_terms + 1) * sizeof *access.spans),
                          access.spans, (size_t)access.at->n_terms * sizeof *access.spans);
    ARENA_PUSH(interp->memory, kept.accesses, access);
  }
  ARENA_PUSH(interp->memory, interp->sharing->regions, kept);
}

/* How many pairs race; `reports`: reports each. */
int interp_region_find_races(struct interp *interp, const struct region *region, bool reports) {
  if (region->lost != NULL && reports)
    interp_region_fail(interp, VERDICT_CANNOT_TELL, region->lost,
                       arena_printf(interp->memory, "%s is not followed in a loop that is divided", region->why));
  if (region->lost != NULL) return 1;
  int found = 0;
  bool shares = false;
  for (int i = 0; i < region->accesses.count; i++)
    for (int j = i; j < region->accesses.count && (reports || found == 0); j++) {
      const struct access *a = &region->accesses.items[i], *b = &region->accesses.items[j];
      if (!interp_region_may_meet(a, b)) continue;
      if (a->object != b->object) {
        if (reports && interp->in_kernel) shares |= note_sharing(interp, a, b);
        continue;
      }
      const enum solution solution = overlap(region, a, b, 0);
      if (solution == SOLUTION_NONE) continue;
      found++;
      const bool certain = solution == SOLUTION_FOUND && a->is_certain && b->is_certain;
      if (reports) interp_region_report(interp, region, a, b, other_of(a, b), certain);
    }
  if (shares) keep(interp, region);
  if (region->wrong != NULL && reports)
    interp_region_fail(interp, VERDICT_BROKEN, region->wrong,
                       arena_printf(interp->memory, "'%s' is combined by reduction(%s) but used otherwise in this loop",
                                    region->wrong_name->name, region->wrong_name->operation));
  return found;
}
