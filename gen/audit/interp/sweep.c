/* Sweeps: whether numbers that threads share out, or the bytes that an access reaches, are all of their range. Forms
 * tell: a number that is linear in counters has every value between its ends if no step of it is larger than what the
 * smaller ones reach. */
#include <stdlib.h>

#include "gen/audit/interp/region.h"

static int by_size(const void *a, const void *b) {
  const int64_t x = llabs(((const struct term *)a)->factor), y = llabs(((const struct term *)b)->factor);
  return (x > y) - (x < y);
}

/* Whether a form's numbers, each the first of `size`, leave out some of a range that is `width` wide. */
static bool leaves_gaps(const struct interp *interp, const struct form *form, int64_t size, int64_t width) {
  enum { MOST_TERMS = 16 };
  struct term terms[MOST_TERMS];
  if (form == NULL || form->n_terms > MOST_TERMS) return false;
  for (int i = 0; i < form->n_terms; i++) terms[i] = form->terms[i];
  qsort(terms, (size_t)form->n_terms, sizeof terms[0], by_size);
  int64_t reach = size;
  for (int i = 0; i < form->n_terms && reach < width; i++) {
    const struct span span = interp->symbols.items[terms[i].symbol].span;
    if (span.low >= span.high) continue;
    const int64_t factor = llabs(terms[i].factor);
    if (factor > reach) return true;
    reach = bounded_add(reach, bounded_multiply(factor, span.high - span.low));
  }
  return false;
}

bool interp_leaves_gaps(const struct interp *interp, struct value at, int64_t size) {
  const int64_t width = bounded_add(bounded_add(at.base_width, at.high - at.low), size);
  return (at.blame & BLAME_ALWAYS) == 0 && leaves_gaps(interp, at.form, size, width);
}

bool interp_is_sweep(const struct interp *interp, struct value start, struct value bound, int64_t step) {
  const int64_t width = bounded_add(start.high - start.low, 1);
  if (!interp->is_launched || start.form == NULL || start.blame != 0 || step <= 0) return false;
  return bound.low == bound.high && step <= width && !leaves_gaps(interp, start.form, 1, width);
}

/* ---- Digits ---- */

/* How many numbers of this form are in the range of a value. */
static int64_t numbers_of(const struct form *form, struct value value) {
  const int64_t step = form_step(form);
  return step == 0 ? 1 : (value.high - value.low) / step + 1;
}

const struct form *interp_digit(struct interp *interp, enum operator_kind operation, struct value a,
                                const struct form *of, int64_t divisor, struct value value) {
  const bool divides = operation == OPERATOR_DIVIDE, remains = operation == OPERATOR_REMAINDER;
  if (!interp->is_launched || (!divides && !remains) || a.low < 0 || divisor <= 0) return NULL;
  struct digit digit = {of, numbers_of(of, a), divides ? divisor : 1, remains ? divisor : 0, 1};
  const bool is_symbol = of->n_terms == 1 && of->constant == 0 && of->terms[0].factor == 1;
  const struct digit *inner = is_symbol ? &interp->symbols.items[of->terms[0].symbol].digit : NULL;
  if (inner != NULL && inner->of != NULL && inner->modulus == 0) {
    digit.of = inner->of;
    digit.numbers = inner->numbers;
    digit.divisor *= inner->divisor;
  }
  const int64_t step = value.step > 1 && value.low % value.step == 0 ? value.step : 1;
  digit.count = (value.high - value.low) / step + 1;
  const struct symbol symbol = {.span = {value.low / step, value.low / step + digit.count - 1}, .digit = digit};
  return form_scaled(interp->forms, interp_region_new(interp, symbol), step);
}

/* Whether a term before this one is of the same digit. */
static bool is_known(const struct interp *interp, const struct form *form, int which) {
  const struct digit *digit = &interp->symbols.items[form->terms[which].symbol].digit;
  for (int i = 0; i < which; i++) {
    const struct digit *other = &interp->symbols.items[form->terms[i].symbol].digit;
    if (form_equal(other->of, digit->of) && other->divisor == digit->divisor && other->modulus == digit->modulus)
      return true;
  }
  return false;
}

int64_t interp_places_left_out(const struct interp *interp, const struct form *form) {
  for (int i = 0; form != NULL && i < form->n_terms; i++) {
    const struct digit *first = &interp->symbols.items[form->terms[i].symbol].digit;
    int64_t places = 1;
    if (first->of == NULL) continue;
    for (int k = 0; k < form->n_terms; k++) {
      const struct digit *digit = &interp->symbols.items[form->terms[k].symbol].digit;
      if (!form_equal(digit->of, first->of) || is_known(interp, form, k)) continue;
      places = bounded_multiply(places, digit->count);
    }
    if (first->numbers < places) return places - first->numbers;
  }
  return 0;
}
