/* The loops of a region, and what it accesses. */
#include "gen/audit/interp/region.h"

#include <string.h>

/* ---- Loops ---- */

bool interp_region_divides(const struct interp *interp, const struct syntax *loop) {
  const struct region *region = interp->region;
  if (region == NULL || region->share.doer != DOER_LOOP) return false;
  for (int i = 0; i < region->share.n_loops; i++)
    if (region->share.loops[i] == loop) return true;
  return false;
}

static bool find_inner(struct syntax *node, void *data) {
  bool *found = data;
  const bool loops = node->kind == SYNTAX_FOR || node->kind == SYNTAX_WHILE || node->kind == SYNTAX_DO;
  *found = *found || loops || (node->kind == SYNTAX_CALL && node->function != NULL && node->function->body != NULL);
  return !*found;
}

int64_t interp_region_single(struct interp *interp, const struct syntax *loop, int64_t count) {
  enum { MOST_SINGLE = 64, MOST_PARTS = 128 };
  const struct region *region = interp->region;
  if (region == NULL || region->detail == DETAIL_NONE || count < 2) return 0;
  const bool divided = interp_region_divides(interp, loop);
  if (region->grid.is_one && loop == region->share.loops[REGION_MOST_LOOPS - 1]) return 0;
  if (region->detail <= DETAIL_ALL_LAST) return divided || region->detail == DETAIL_ALL_LAST;
  if (divided && region->detail != MOST_DETAIL) return 0;
  bool has_inner = divided;
  syntax_visit(loop->parts[3], find_inner, &has_inner);
  return has_inner && count <= MOST_SINGLE && region->parts * count <= MOST_PARTS ? count : divided;
}

static bool spreads(struct syntax *node, int depth);

struct spread_search {
  bool found;
  int depth;
};

static bool find_spread(struct syntax *node, void *data) {
  struct spread_search *search = data;
  const struct note *note = node->note;
  if (note != NULL && note->barrier_at_end) search->found = true;
  const unsigned meets = DIRECTIVE_LOOP | DIRECTIVE_BARRIER | DIRECTIVE_SINGLE;
  for (const struct directive *d = note != NULL ? note->directive : NULL; d != NULL; d = d->next)
    if ((d->parts & meets) != 0 && (d->parts & DIRECTIVE_PARALLEL) == 0) search->found = true;
  const bool calls = node->kind == SYNTAX_CALL && node->function != NULL && node->function->body != NULL;
  if (calls && !search->found && search->depth < 16) search->found = spreads(node->function->body, search->depth + 1);
  return !search->found;
}

/* Whether threads of a team share something out in it, or wait for each other. */
static bool spreads(struct syntax *node, int depth) {
  struct spread_search search = {false, depth};
  syntax_visit(node, find_spread, &search);
  return search.found;
}

bool interp_region_unrolls(struct interp *interp, struct syntax *loop) {
  const struct region *region = interp->region;
  if (region == NULL || !region->is_team || region->share.doer != DOER_ALL) return false;
  struct note *note = interp_note(interp, loop);
  if (note->spreads == 0) note->spreads = spreads(loop, 0) ? 1 : -1;
  return note->spreads > 0;
}

const struct form *interp_region_counter(struct interp *interp, const struct syntax *loop, struct value start,
                                         const struct variable *counter, int64_t step, int64_t first, int64_t count,
                                         bool is_exact) {
  const struct region *region = interp->region;
  if (!interp_region_has_forms(interp)) return NULL;
  const struct form *base = interp_region_form(interp, start);
  if (region != NULL && region->grid.is_one && loop == region->share.loops[REGION_MOST_LOOPS - 1])
    return interp_grid_threads(interp, count);
  if (region != NULL && region->grid.next == loop) /* of the iteration after that of the symbol */
    return form_sum(interp->forms, form_sum(interp->forms, base, form_constant(interp->forms, step), 1),
                    form_symbol(interp->forms, loop->note->counter), step);
  struct symbol symbol = {.span = {first, first + count - 1}, .is_exact = is_exact};
  if (base != NULL && base->n_terms == 0) {
    symbol.counter = counter;
    symbol.start = base->constant;
    symbol.step = step;
  }
  const int made = interp_region_symbol(interp, symbol);
  for (int i = 0; region != NULL && i < region->share.n_loops; i++)
    if (region->share.loops[i] == loop) interp->region->share.symbols[i] = made;
  if (interp_grid_lanes_meet(interp, loop)) interp->symbols.items[made].is_of_warps = true;
  if (interp_grid_meets(interp, loop)) {
    interp->symbols.items[made].is_uniform = true;
    loop->note->counter = made;
  }
  return form_sum(interp->forms, base, form_symbol(interp->forms, made), step);
}

int64_t interp_region_distance(struct interp *interp, struct value from, struct value to) {
  if (!interp_region_has_forms(interp)) return VALUE_MAX;
  const struct form *distance =
      form_sum(interp->forms, interp_region_form(interp, to), interp_region_form(interp, from), -1);
  return distance == NULL ? VALUE_MAX : interp_region_span(interp, distance).high;
}

/* ---- Accesses ---- */

int interp_region_number(const struct interp *interp) {
  return interp->region == NULL ? 0 : interp->region->number;
}

void interp_region_lost(struct interp *interp, const struct syntax *node, const char *why) {
  struct region *region = interp->region;
  if (region == NULL || region->lost != NULL) return;
  region->lost = node;
  region->why = why;
}

void interp_region_rows(struct interp *interp, int64_t count, int64_t step, bool is_exact) {
  if (interp->region != NULL) interp->region->rows = (struct access_rows){count, step, is_exact};
}

/* What of a symbol's span is left by the conditions around this point. */
static struct span narrowed(const struct interp *interp, int which) {
  const struct symbol *symbol = &interp->symbols.items[which];
  struct span span = symbol->span;
  if (interp->region->grid.is_one) return interp_grid_span(interp, which);
  if (symbol->counter == NULL || symbol->counter->function != interp->frame->function) return span;
  const struct value *value = &interp->states[interp->frame->base + symbol->counter->slot].value;
  const bool is_it = value->kind == VALUE_INTEGER && value->form != NULL && value->form->n_terms == 1 &&
                     value->form->terms[0].symbol == which && value->form->terms[0].factor == symbol->step &&
                     value->form->constant == symbol->start;
  if (!is_it || symbol->step == 0) return span;
  int64_t low = (symbol->step > 0 ? value->low : value->high) - symbol->start,
          high = (symbol->step > 0 ? value->high : value->low) - symbol->start;
  const int64_t size = symbol->step > 0 ? symbol->step : -symbol->step;
  if (symbol->step < 0) {
    low = -low;
    high = -high;
  }
  if (low > 0 && (low + size - 1) / size > span.low) span.low = (low + size - 1) / size;
  if (high >= 0 && high / size < span.high) span.high = high / size;
  return span;
}

static bool is_private(const struct interp *interp, int object) {
  const struct object *of = &interp->objects[object];
  if (object >= interp->region->first_object) return true;
  return of->kind == OBJECT_LOCAL && of->region == interp->region->number;
}

static bool is_constant(const struct object *object) {
  return object->kind == OBJECT_STATIC && object->variable->is_constant;
}

/* Whether the symbols that stand for sums in coarser forms of two accesses of one form are bounded alike. */
static bool same_coarse(const struct access *a, const struct access *b) {
  const struct form *of = a->at;
  while (a->coarse != NULL && b->coarse != NULL) {
    a = a->coarse;
    b = b->coarse;
    if (a->at->n_terms != b->at->n_terms || a->at->constant != b->at->constant) return false;
    for (int i = 0; i < a->at->n_terms; i++) {
      const struct term s = a->at->terms[i], t = b->at->terms[i];
      const bool is_sum = form_factor(of, s.symbol) == 0 && form_factor(of, t.symbol) == 0;
      if (s.factor != t.factor || (s.symbol != t.symbol && !is_sum) ||
          memcmp(&a->spans[i], &b->spans[i], sizeof a->spans[i]) != 0)
        return false;
    }
  }
  return a->coarse == b->coarse;
}

/* Whether all that the second one reaches is in the first one. */
static bool same_access(const struct access *a, const struct access *b) {
  if (a->reach.low > b->reach.low || a->reach.high < b->reach.high) return false;
  if (a->object != b->object || a->is_write != b->is_write || a->phase != b->phase || a->size != b->size ||
      a->guard != b->guard || a->share.number != b->share.number || a->share.doer != b->share.doer ||
      a->is_certain != b->is_certain || a->call != b->call || a->warp_phase != b->warp_phase ||
      a->n_fixed != b->n_fixed || !form_equal(a->at, b->at) || !same_coarse(a, b))
    return false;
  return memcmp(a->iterations, b->iterations, sizeof a->iterations) == 0 &&
         memcmp(a->share.symbols, b->share.symbols, sizeof a->share.symbols) == 0 &&
         (a->at->n_terms == 0 || memcmp(a->spans, b->spans, (size_t)a->at->n_terms * sizeof *a->spans) == 0);
}

static void add_access(struct interp *interp, struct access access) {
  struct region *region = interp->region;
  enum { LATELY = 24 };
  for (int i = region->accesses.count - 1; i >= 0 && i >= region->accesses.count - LATELY; i--)
    if (same_access(&region->accesses.items[i], &access)) return;
  ARENA_PUSH(interp->forms, region->accesses, access);
  interp->n_listed++;
}

/* Fills in who does an access, and which bytes it reaches. None is outside of `bytes`, whatever the form says: a
 * condition may bound a number of several counters. */
static struct access complete(struct interp *interp, struct access access, struct span bytes) {
  struct region *region = interp->region;
  const bool is_operand = region->guard == GUARD_ATOMIC && region->atomic != NULL && access.node != region->atomic;
  access.guard = is_operand ? GUARD_NONE : region->guard;
  access.lock = region->lock;
  access.phase = region->phase;
  access.share = region->share;
  access.call = region->grid.call;
  access.warp_phase = region->grid.warp_phase;
  access.n_warp_loops = region->grid.n_warp_loops;
  access.n_fixed = region->grid.n_fixed;
  if (access.n_fixed > 0) {
    struct fixed *fixed = arena_alloc(interp->forms, (size_t)access.n_fixed * sizeof *fixed);
    access.fixed = memcpy(fixed, region->grid.fixed, (size_t)access.n_fixed * sizeof *fixed);
  }
  if (access.share.doer == DOER_ALL && region->thread >= 0) {
    access.share.n_loops = 1;
    access.share.symbols[0] = region->thread;
  }
  for (int i = 0; i < access.share.n_loops; i++)
    access.iterations[i] =
        access.share.symbols[i] >= 0 ? narrowed(interp, access.share.symbols[i]) : (struct span){0, VALUE_MAX};
  struct span *spans = arena_alloc(interp->forms, ((size_t)access.at->n_terms + 1) * sizeof *spans);
  access.reach = (struct span){access.at->constant, access.at->constant};
  for (int i = 0; i < access.at->n_terms; i++) {
    const int symbol = access.at->terms[i].symbol;
    spans[i] = narrowed(interp, symbol);
    const bool is_whole = spans[i].low == spans[i].high || interp->symbols.items[symbol].is_exact;
    access.is_certain = access.is_certain && is_whole;
    const int64_t a = bounded_multiply(access.at->terms[i].factor, spans[i].low),
                  b = bounded_multiply(access.at->terms[i].factor, spans[i].high);
    access.reach.low = bounded_add(access.reach.low, a < b ? a : b);
    access.reach.high = bounded_add(access.reach.high, a < b ? b : a);
  }
  access.reach.high = bounded_add(access.reach.high, access.size - 1);
  access.reach.low = access.reach.low > bytes.low ? access.reach.low : bytes.low;
  access.reach.high = access.reach.high < bytes.high ? access.reach.high : bytes.high;
  access.spans = spans;
  return access;
}

/* An access of a kernel, by a form with all sums, and as coarser ones by forms with symbols for them. */
static struct access with_sums(struct interp *interp, struct access access, struct span bytes) {
  const struct form *form = access.at, *expanded = interp_grid_expanded(interp, form);
  const struct form *forms[] = {interp_grid_bounded(interp, form), form, expanded};
  for (int i = 0; i < 3; i++) {
    if (forms[i] == NULL || (i > 0 && forms[i] == access.at)) continue;
    if (i > 0) {
      struct access *coarse = arena_alloc(interp->forms, sizeof *coarse);
      *coarse = access;
      access.coarse = coarse;
    }
    access.at = forms[i];
    access = complete(interp, access, bytes);
  }
  return access;
}

void interp_region_access(struct interp *interp, struct value at, int64_t size, bool is_write,
                          const struct syntax *node) {
  struct region *region = interp->region;
  if (region == NULL) return;
  const struct access_rows rows = region->rows;
  region->rows = (struct access_rows){0};
  if (at.object < 0) {
    if ((at.origin & ORIGIN_REPORTED) == 0) interp_region_lost(interp, node, "what this points to");
    return;
  }
  if (is_private(interp, at.object) || is_constant(&interp->objects[at.object]) || size <= 0) return;
  const struct form *form = interp_region_form(interp, at);
  const struct span span = {bounded_add(at.base, at.low), bounded_add(at.base + at.base_width, at.high)};
  if (form == NULL) form = interp_region_new(interp, (struct symbol){.span = span});
  const struct span bytes = {span.low, bounded_add(span.high, size - 1)};
  if (rows.count > 1) {
    const struct symbol row = {.span = {0, rows.count - 1}, .is_exact = rows.is_exact};
    form = form_sum(interp->forms, form, interp_region_new(interp, row), rows.step);
    size = size - (rows.count - 1) * rows.step;
  }
  if (form == NULL) {
    interp_region_lost(interp, node, "this address");
    return;
  }
  const struct access access = {.object = at.object,
                                .is_write = is_write,
                                .is_certain = interp->guards == 0 && (at.blame & BLAME_ALWAYS) == 0,
                                .at = form,
                                .size = size,
                                .node = node};
  add_access(interp, region->grid.is_one ? with_sums(interp, access, bytes) : complete(interp, access, bytes));
}

void interp_region_scalar(struct interp *interp, struct lvalue lvalue, bool is_write, const struct syntax *node) {
  if (interp->region == NULL || is_private(interp, lvalue.at.object)) return;
  const struct object *object = &interp->objects[lvalue.at.object];
  if (object->kind == OBJECT_LOCAL && object->variable != NULL && object->variable->is_constant && !is_write) return;
  interp_region_access(interp, lvalue.at, lvalue.type->size, is_write, node);
}
