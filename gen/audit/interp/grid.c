/* Launches: how one is followed to list what its threads access. The threads of a block are numbered by two symbols
 * along x, warp and lane, so that what kernels make of them by / 32 and % 32 is linear. */
#include <string.h>

#include "gen/audit/interp/region.h"
#include "gen/audit/program/device.h"
#include "gen/audit/program/externals.h"

/* ---- Forms ---- */

const struct form *interp_grid_threads(struct interp *interp, int64_t count) {
  enum { LANES = 32 };
  struct share *share = &interp->region->share;
  const bool splits = count % LANES == 0;
  const struct symbol warp = {.span = {0, splits ? count / LANES - 1 : 0}, .is_exact = true},
                      lane = {.span = {0, splits ? LANES - 1 : count - 1}, .is_exact = true};
  const int first = interp_region_symbol(interp, warp), second = interp_region_symbol(interp, lane);
  share->symbols[REGION_MOST_LOOPS - 2] = first;
  share->symbols[REGION_MOST_LOOPS - 1] = second;
  return form_sum(interp->forms, form_symbol(interp->forms, second), form_symbol(interp->forms, first), LANES);
}

const struct form *interp_grid_divided(struct interp *interp, const struct form *form, int64_t divisor, bool remains) {
  if (form == NULL || divisor <= 0 || form->constant < 0) return NULL;
  struct arena *arena = interp->forms;
  const struct form *whole = form_constant(arena, form->constant / divisor),
                    *rest = form_constant(arena, form->constant % divisor);
  for (int i = 0; i < form->n_terms; i++) {
    const struct form *symbol = form_symbol(arena, form->terms[i].symbol);
    const int64_t factor = form->terms[i].factor;
    if (factor % divisor == 0)
      whole = form_sum(arena, whole, symbol, factor / divisor);
    else
      rest = form_sum(arena, rest, symbol, factor);
  }
  if (whole == NULL || rest == NULL) return NULL;
  const struct span span = interp_region_span(interp, rest);
  return span.low >= 0 && span.high < divisor ? (remains ? rest : whole) : NULL;
}

const struct form *interp_grid_counter(struct interp *interp, struct value counter) {
  if (interp->region == NULL || !interp->region->grid.is_one || counter.form == NULL) return counter.form;
  const struct span span = interp_region_span(interp, counter.form);
  if (span.low >= counter.low && span.high <= counter.high) return counter.form;
  return interp_region_new(
      interp, (struct symbol){.span = {counter.low, counter.high}, .sum = interp_grid_expanded(interp, counter.form)});
}

const struct form *interp_grid_expanded(struct interp *interp, const struct form *form) {
  const struct form *expanded = form;
  for (int i = 0; form != NULL && i < form->n_terms && expanded != NULL; i++) {
    const struct form *sum = interp->symbols.items[form->terms[i].symbol].sum;
    if (sum == NULL) continue;
    const int64_t factor = form->terms[i].factor;
    expanded = form_sum(interp->forms, expanded, form_symbol(interp->forms, form->terms[i].symbol), -factor);
    expanded = form_sum(interp->forms, expanded, sum, factor);
  }
  return expanded;
}

/* By how much the form of a variable counts in another form that has all of it; 0: it has not. */
static int64_t factor_in(const struct form *form, const struct form *variable) {
  const int64_t of = variable->terms[0].factor, factor = form_factor(form, variable->terms[0].symbol) / of;
  for (int i = 0; i < variable->n_terms; i++)
    if (form_factor(form, variable->terms[i].symbol) != bounded_multiply(factor, variable->terms[i].factor)) return 0;
  return factor;
}

/* The variable of the fewest terms, but of several, all of them in a form, whose range is narrower than its own form;
 * NULL: there is none. */
static const struct value *narrowed_part(const struct interp *interp, const struct form *form) {
  const struct value *found = NULL;
  for (int i = interp->region->first_object; i < interp->n_objects; i++) {
    const struct value *value = &interp->states[i].value;
    if (value->kind != VALUE_INTEGER || value->form == NULL || value->form->n_terms < 2) continue;
    const struct span span = interp_region_span(interp, value->form);
    if (span.low >= value->low && span.high <= value->high) continue;
    const bool has_fewer = found == NULL || value->form->n_terms < found->form->n_terms;
    if (has_fewer && factor_in(form, value->form) != 0) found = value;
  }
  return found;
}

const struct form *interp_grid_bounded(struct interp *interp, const struct form *form) {
  const struct value *value = narrowed_part(interp, form);
  if (value == NULL) return form;
  const struct form *part = value->form;
  const int64_t step = form_step(part);
  const struct span all = interp_region_span(interp, part);
  const int64_t low = value->low > all.low ? value->low : all.low,
                high = value->high < all.high ? value->high : all.high;
  const int64_t past = low - all.low, last = high - all.low;
  if (past < 0 || last < past) return form;
  const struct span span = {(past + step - 1) / step, last / step};
  const int64_t factor = factor_in(form, part);
  const struct form *rest = form_sum(interp->forms, form, part, -factor); /* the part is the least of it and steps */
  rest = form_sum(interp->forms, rest, form_constant(interp->forms, bounded_multiply(factor, all.low)), 1);
  return form_sum(interp->forms, rest, interp_region_new(interp, (struct symbol){.span = span}), factor * step);
}

/* The form of a variable that has this symbol, also in the sum that it stands for; NULL: it has it not. */
static const struct form *form_with(const struct interp *interp, const struct value *value, int symbol) {
  const struct form *form = value->kind == VALUE_INTEGER ? value->form : NULL;
  if (form == NULL || form_factor(form, symbol) != 0) return form;
  const bool is_one = form->n_terms == 1 && form->constant == 0 && form->terms[0].factor == 1;
  const struct form *sum = is_one ? interp->symbols.items[form->terms[0].symbol].sum : NULL;
  return sum != NULL && form_factor(sum, symbol) != 0 ? sum : NULL;
}

/* What the range of a variable leaves of a symbol in its form. */
static void narrow(const struct interp *interp, const struct value *value, int symbol, struct span *span) {
  const struct form *form = form_with(interp, value, symbol);
  const int64_t factor = form != NULL ? form_factor(form, symbol) : 0;
  if (factor == 0) return;
  const struct span all = interp_region_span(interp, form), of = interp->symbols.items[symbol].span;
  const int64_t size = factor > 0 ? factor : -factor;
  const int64_t others_low = all.low - (factor > 0 ? factor * of.low : factor * of.high),
                others_high = all.high - (factor > 0 ? factor * of.high : factor * of.low);
  int64_t low = bounded_add(value->low, -others_high), high = bounded_add(value->high, -others_low);
  if (factor < 0) {
    const int64_t other = low;
    low = -high;
    high = -other;
  }
  if (low > 0 && (low + size - 1) / size > span->low) span->low = (low + size - 1) / size;
  if (high >= 0 && high / size < span->high) span->high = high / size;
}

int interp_grid_assume(struct interp *interp, struct syntax *condition) {
  struct region *region = interp->region;
  if (region == NULL || !region->grid.is_one) return -1;
  const int before = region->grid.n_fixed;
  condition = syntax_bare(condition);
  if (condition->kind == SYNTAX_BINARY && condition->operation == OPERATOR_AND) {
    interp_grid_assume(interp, condition->parts[0]);
    interp_grid_assume(interp, condition->parts[1]);
    return before;
  }
  if (condition->kind != SYNTAX_BINARY || condition->operation != OPERATOR_EQUAL ||
      condition->parts[0]->type->kind != TYPE_INTEGER || before == GRID_MOST_FIXED)
    return before;
  const struct value a = interp_evaluate(interp, condition->parts[0]), b = interp_evaluate(interp, condition->parts[1]);
  const bool is_one = a.form != NULL && a.form->n_terms == 1 && a.form->constant == 0 && a.form->terms[0].factor == 1;
  if (is_one && value_is_one(b))
    region->grid.fixed[region->grid.n_fixed++] = (struct fixed){a.form->terms[0].symbol, b.low};
  return before;
}

void interp_grid_forget(struct interp *interp, int before) {
  if (before >= 0) interp->region->grid.n_fixed = before;
}

struct span interp_grid_span(const struct interp *interp, int symbol) {
  struct span span = interp->symbols.items[symbol].span;
  const struct region *region = interp->region;
  for (int i = 0; i < region->grid.n_fixed; i++)
    if (region->grid.fixed[i].symbol == symbol)
      return (struct span){region->grid.fixed[i].number, region->grid.fixed[i].number};
  const struct device *device = interp->audit->device;
  for (int i = interp->region->first_object; i < interp->n_objects; i++)
    narrow(interp, &interp->states[i].value, symbol, &span);
  for (int i = INDEX_THREAD; i <= INDEX_BLOCK; i++)
    for (int axis = 0; axis < INDEX_AXES; axis++)
      narrow(interp, &interp->states[interp->statics[device->index[i][axis]->slot]].value, symbol, &span);
  return span;
}

/* ---- Following ---- */

bool interp_grid_is_shared(const struct object *object) {
  return object->kind == OBJECT_STATIC && object->variable->function != NULL;
}

void interp_grid_barrier(struct interp *interp, const struct syntax *node) {
  struct region *region = interp->region;
  if (region == NULL || !region->grid.is_one) return;
  const bool inside = region->grid.call != NULL; /* the header sees to what is in there */
  const uint64_t guards = inside ? region->grid.guards : interp->guards;
  if ((guards & region->grid.threads) != 0)
    interp_region_lost(interp, node, "a barrier that not all threads may reach");
  if (!inside && region->grid.arms > 0) interp_region_lost(interp, node, "a barrier in a choice");
  if (!inside || region->grid.arms_of_call == 0) region->phase++;
}

void interp_grid_meet_lanes(struct interp *interp) {
  struct region *region = interp->region;
  if (region == NULL || !region->grid.is_one) return;
  if ((region->grid.call != NULL ? region->grid.arms_of_call : region->grid.arms) == 0) region->grid.warp_phase++;
}

bool interp_grid_enters(struct interp *interp, const struct syntax *call, const struct function *function) {
  struct region *region = interp->region;
  if (region == NULL || !region->grid.is_one || region->grid.call != NULL || interp_is_program(interp, function))
    return false;
  region->grid.call = call;
  region->grid.guards = interp->guards;
  region->grid.arms_of_call = region->grid.arms;
  return true;
}

void interp_grid_leaves(struct interp *interp, bool entered) {
  if (entered) interp->region->grid.call = NULL;
}

static bool has_barrier(struct syntax *node, bool of_warps, int depth);

struct barrier_search {
  bool found;
  bool of_warps;
  int depth;
};

static bool find_barrier(struct syntax *node, void *data) {
  struct barrier_search *search = data;
  const struct function *function = node->kind == SYNTAX_CALL ? node->function : NULL;
  if (function != NULL && search->of_warps) search->found |= external_meets_lanes(function->name);
  if (function != NULL && !search->of_warps)
    search->found |= strncmp(function->name, "__syncthreads", strlen("__syncthreads")) == 0;
  if (function != NULL && function->body != NULL && !search->found && search->depth < 16)
    search->found = has_barrier(function->body, search->of_warps, search->depth + 1);
  return !search->found;
}

static bool has_barrier(struct syntax *node, bool of_warps, int depth) {
  struct barrier_search search = {false, of_warps, depth};
  syntax_visit(node, find_barrier, &search);
  return search.found;
}

bool interp_grid_meets(struct interp *interp, const struct syntax *loop) {
  struct region *region = interp->region;
  if (region == NULL || !region->grid.is_one || region->grid.call != NULL || interp_region_divides(interp, loop))
    return false;
  struct note *note = loop->note;
  if (note->spreads == 0) note->spreads = has_barrier(loop->parts[3], false, 0) ? 1 : -1;
  return note->spreads > 0;
}

bool interp_grid_lanes_meet(struct interp *interp, const struct syntax *loop) {
  const struct region *region = interp->region;
  if (region == NULL || !region->grid.is_one || interp_region_divides(interp, loop)) return false;
  struct note *note = loop->note;
  if (note->warps == 0) note->warps = has_barrier(loop->parts[3], true, 0) ? 1 : -1;
  return note->warps > 0;
}

/* The loops over blocks and threads, outermost first. */
static struct share share_of(struct syntax *launch) {
  struct share share = {.doer = DOER_LOOP, .number = 1};
  for (struct syntax *loop = launch; loop->kind == SYNTAX_FOR && share.n_loops < REGION_MOST_LOOPS - 1;
       loop = loop->parts[3]) {
    share.symbols[share.n_loops] = -1;
    share.loops[share.n_loops++] = loop;
  }
  share.loops[share.n_loops] = share.loops[share.n_loops - 1]; /* warp and lane */
  share.symbols[share.n_loops++] = -1;
  return share;
}

void interp_grid_check(struct interp *interp, struct syntax *launch) {
  const struct device *device = interp->audit->device;
  interp->n_regions++;
  for (int detail = 0; detail <= MOST_DETAIL; detail++) {
    struct region region = {.number = ++interp->region_numbers,
                            .is_team = true,
                            .detail = detail,
                            .parts = 1,
                            .node = launch,
                            .share = share_of(launch)};
    region.grid.is_one = true;
    region.grid.threads = (uint64_t)7 << (interp->n_loops + INDEX_AXES);
    for (int i = 0; i < INDEX_NAMES; i++)
      for (int axis = 0; axis < INDEX_AXES; axis++)
        interp->objects[interp_variable(interp, device->index[i][axis])].region = region.number;
    const struct arena_mark before = arena_mark(interp->forms);
    interp_region_list(interp, launch, NULL, &region);
    const bool ends =
        detail == MOST_DETAIL || region.lost != NULL || interp_grid_find_races(interp, &region, false) == 0;
    if (ends) interp_grid_find_races(interp, &region, true);
    arena_release(interp->forms, before);
    if (ends) return;
  }
}
