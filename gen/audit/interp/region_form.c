/* Forms in regions: what numbers and addresses are linear in. */
#include <string.h>

#include "gen/audit/interp/region.h"

int interp_region_symbol(struct interp *interp, struct symbol symbol) {
  ARENA_PUSH(interp->memory, interp->symbols, symbol);
  return interp->symbols.count - 1;
}

/* Whether numbers get forms here. What is followed again in parts has been listed as a whole. Forms outside of regions
 * stay, so a program whose loops are followed too often gets no more of them. */
bool interp_region_has_forms(const struct interp *interp) {
  enum { MOST_SYMBOLS = 1 << 18 };
  if (interp->region != NULL) return true;
  const bool launched = interp->is_launched;
  return interp->n_loops > 0 && interp->symbols.count - (launched ? interp->first_symbol : 0) < MOST_SYMBOLS &&
         (interp->rehearsals == 0 || interp->has_open_races || launched);
}

const struct form *interp_region_new(struct interp *interp, struct symbol symbol) {
  return form_symbol(interp->forms, interp_region_symbol(interp, symbol));
}

/* The form of an integer, or of an address; NULL: it is any of its range. */
const struct form *interp_region_form(struct interp *interp, struct value value) {
  if (value.form != NULL) return value.form;
  if (value.kind == VALUE_INTEGER && value.low == value.high) return form_constant(interp->forms, value.low);
  if (value.kind == VALUE_POINTER && value.object >= 0 && value.low == value.high && value.base_width == 0)
    return form_constant(interp->forms, bounded_add(value.base, value.low));
  return NULL;
}

/* Whether a number from memory is of a smaller range than where it was read: after a condition. */
static bool is_narrowed(const struct interp *interp, struct value value) {
  if (interp->region == NULL || value.form == NULL || value.form->n_terms != 1 || value.form->constant != 0 ||
      value.form->terms[0].factor != 1 || value.form->terms[0].symbol < interp->region->n_before ||
      value.form->terms[0].symbol == interp->region->thread)
    return false;
  const struct symbol *symbol = &interp->symbols.items[value.form->terms[0].symbol];
  return symbol->counter == NULL && !symbol->is_exact &&
         (value.low > symbol->span.low || value.high < symbol->span.high);
}

/* The same, or of a symbol for it. */
static const struct form *any_form_of(struct interp *interp, struct value value) {
  const struct form *form = interp_region_form(interp, value);
  const bool is_range = value.kind == VALUE_INTEGER && value.low > VALUE_MIN && value.high < VALUE_MAX;
  if (!is_range || (form != NULL && !is_narrowed(interp, value))) return form;
  return interp_region_new(interp, (struct symbol){.span = {value.low, value.high}});
}

struct span interp_region_span(const struct interp *interp, const struct form *form) {
  struct span span = {form->constant, form->constant};
  for (int i = 0; i < form->n_terms; i++) {
    const struct span of = interp->symbols.items[form->terms[i].symbol].span;
    const int64_t a = bounded_multiply(form->terms[i].factor, of.low),
                  b = bounded_multiply(form->terms[i].factor, of.high);
    span.low = bounded_add(span.low, a < b ? a : b);
    span.high = bounded_add(span.high, a < b ? b : a);
  }
  return span;
}

/* What a sum or a difference may be, by the operands' ranges. */
static struct span range_of(enum operator_kind operation, struct value a, struct value b, struct span span) {
  const bool adds = operation == OPERATOR_ADD;
  if (!adds && operation != OPERATOR_SUBTRACT) return span;
  const struct span range = {bounded_add(a.low, adds ? b.low : -b.high), bounded_add(a.high, adds ? b.high : -b.low)};
  return (struct span){range.low > span.low ? range.low : span.low, range.high < span.high ? range.high : span.high};
}

/* Whether a number of this span is the same in an integer type. */
static bool fits(struct span span, const struct type *type) {
  const int bits = (int)type->size * 8 - (type->is_signed ? 1 : 0);
  const int64_t end = bits < 63 ? (INT64_C(1) << bits) - 1 : VALUE_MAX;
  return span.high <= end && span.high < VALUE_MAX && span.low > VALUE_MIN &&
         span.low >= (type->is_signed ? -end - 1 : 0);
}

void interp_region_binary(struct interp *interp, enum operator_kind operation, struct value a, struct value b,
                          const struct type *type, struct value *value) {
  if (!interp_region_has_forms(interp) || (a.form == NULL && b.form == NULL)) return;
  const struct form *x = any_form_of(interp, a), *y = any_form_of(interp, b), *form = NULL;
  if (x == NULL || y == NULL) return;
  const bool by_constant = y->n_terms == 0;
  switch (operation) {
  case OPERATOR_ADD:
  case OPERATOR_SUBTRACT:
    form = form_sum(interp->forms, x, y, operation == OPERATOR_ADD ? 1 : -1);
    break;
  case OPERATOR_MULTIPLY:
    if (by_constant) form = form_scaled(interp->forms, x, y->constant);
    if (!by_constant && x->n_terms == 0) form = form_scaled(interp->forms, y, x->constant);
    break;
  case OPERATOR_LEFT:
    if (by_constant && y->constant >= 0 && y->constant < 32)
      form = form_scaled(interp->forms, x, INT64_C(1) << y->constant);
    break;
  case OPERATOR_DIVIDE:
    if (by_constant && interp_region_span(interp, x).low >= 0) form = form_divided(interp->forms, x, y->constant);
    break;
  default:
    break;
  }
  const bool divides = operation == OPERATOR_DIVIDE, remains = operation == OPERATOR_REMAINDER;
  if (form == NULL && by_constant && (divides || remains) && interp->region != NULL && interp->region->grid.is_one)
    form = interp_grid_divided(interp, x, y->constant, remains);
  if (form == NULL && by_constant) form = interp_digit(interp, operation, a, x, y->constant, *value);
  if (form == NULL || !fits(range_of(operation, a, b, interp_region_span(interp, form)), type)) return;
  value->form = form;
  if (interp->region == NULL) return;
  const struct span span = interp_region_span(interp, form);
  if (span.low > value->low) value->low = span.low;
  if (span.high < value->high) value->high = span.high;
}

const struct form *interp_region_moved(struct interp *interp, struct value at, struct value index, int64_t size) {
  if (!interp_region_has_forms(interp)) return NULL;
  const struct form *from = interp_region_form(interp, at);
  return from == NULL ? NULL : form_sum(interp->forms, from, any_form_of(interp, index), size);
}

const struct form *interp_region_offset(struct interp *interp, struct value at, int64_t offset) {
  if (!interp_region_has_forms(interp)) return NULL;
  if (at.form == NULL || offset == 0) return at.form;
  return form_sum(interp->forms, at.form, form_constant(interp->forms, offset), 1);
}

struct value interp_region_shared(struct interp *interp, int object, struct value value) {
  struct region *region = interp->region;
  if (region == NULL || value.kind != VALUE_INTEGER || value.low == value.high || object >= region->n_shared ||
      region->shared[object] == 0)
    return value;
  interp->symbols.items[region->shared[object] - 1].span = (struct span){value.low, value.high};
  value.form = form_symbol(interp->forms, region->shared[object] - 1);
  return value;
}

struct value interp_region_loaded(struct interp *interp, struct value at, struct value value) {
  const struct region *region = interp->region;
  if (region != NULL && region->grid.is_one) /* what it is may differ where its address does */
    value.loops |= at.object >= region->first_object ? region->grid.threads : at.loops & region->grid.threads;
  if (interp->region != NULL && value.kind == VALUE_INTEGER && value.low != value.high)
    value.form = any_form_of(interp, value);
  return value;
}

/* What is known of variables before a region is the same for all of it. */
void interp_region_take_shared(struct interp *interp) {
  struct region *region = interp->region;
  for (int i = 0; i < interp->n_objects; i++) {
    const struct object *object = &interp->objects[i];
    struct value *value = &interp->states[i].value;
    if (object->kind == OBJECT_STATIC && object->type->kind == TYPE_INTEGER)
      region->shared[i] = 1 + interp_region_symbol(interp, (struct symbol){.step = 0});
    if (value->form != NULL) continue;
    const bool points = value->kind == VALUE_POINTER && value->object >= 0;
    const struct span span = points
                                 ? (struct span){bounded_add(value->base, value->low),
                                                 bounded_add(bounded_add(value->base, value->base_width), value->high)}
                                 : (struct span){value->low, value->high};
    if ((points || value->kind == VALUE_INTEGER) && span.low != span.high)
      value->form = interp_region_new(interp, (struct symbol){.span = span});
  }
  region->n_before = interp->symbols.count;
}

bool interp_region_thread(struct interp *interp, const struct syntax *node, struct value *value) {
  struct region *region = interp->region;
  if (region == NULL || !region->is_team || node->function == NULL ||
      strcmp(node->function->name, "omp_get_thread_num") != 0)
    return false;
  enum { MOST_THREADS = 1 << 16 };
  if (region->thread < 0)
    region->thread = interp_region_symbol(interp, (struct symbol){.span = {0, MOST_THREADS - 1}, .is_exact = false});
  *value = value_integer(0, MOST_THREADS - 1);
  value->blame = BLAME_ALWAYS;
  value->form = form_symbol(interp->forms, region->thread);
  return true;
}
