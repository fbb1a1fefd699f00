/* What is known of a term: its atoms, its range, its quotient. */
#include <math.h>

#include "gen/verify/proof/term_private.h"

const struct atom *term_atom(const struct term *a) {
  const bool one = a->count == 1 && a->products[0].factor == 1 && a->products[0].count == 1;
  return one && a->products[0].powers[0].power == 1 ? a->products[0].powers[0].atom : NULL;
}

bool term_is_number(const struct term *a, double *x) {
  *x = a->count == 0 ? 0 : a->products[0].factor;
  return a->count == 0 || (a->count == 1 && a->products[0].count == 0);
}

static bool any_atom(const struct term *a, bool (*is)(const struct atom *atom, const void *data), const void *data) {
  for (int i = 0; i < a->count; i++)
    for (int k = 0; k < a->products[i].count; k++) {
      const struct atom *atom = a->products[i].powers[k].atom;
      if (is(atom, data) || (atom->arg != NULL && any_atom(atom->arg, is, data))) return true;
    }
  return false;
}

static bool is_same(const struct atom *atom, const void *data) {
  return atom == data;
}

static bool is_carried(const struct atom *atom, const void *data) {
  const int *loop = data;
  return atom->kind == ATOM_CARRIED && atom->count[0] == *loop;
}

bool term_has(const struct term *a, const struct atom *atom) {
  return any_atom(a, is_same, atom);
}

bool term_has_carried(const struct term *a, int loop) {
  return any_atom(a, is_carried, &loop);
}

static void atom_range(const struct atom *atom, double *low, double *high) {
  const bool counted = atom->kind == ATOM_VARIABLE || atom->kind == ATOM_BOUND;
  *low = counted || atom_is_condition(atom) ? 0 : -INFINITY;
  *high = counted ? (double)atom->count[0] - 1 : atom_is_condition(atom) ? 1 : INFINITY;
}

void term_range(const struct term *a, double *low, double *high) {
  *low = *high = 0;
  for (int i = 0; i < a->count; i++) {
    const struct product *product = &a->products[i];
    double from = product->factor, to = product->factor;
    if (product->count == 1 && product->powers[0].power == 1) {
      double least, most;
      atom_range(product->powers[0].atom, &least, &most);
      from = product->factor * (product->factor > 0 ? least : most);
      to = product->factor * (product->factor > 0 ? most : least);
    } else if (product->count > 0) {
      from = -INFINITY;
      to = INFINITY;
    }
    *low += from;
    *high += to;
  }
}

bool term_divided(struct terms *terms, const struct term *a, double by, const struct term **quotient,
                  const struct term **rest) {
  double low, high;
  *quotient = *rest = term_number(terms, 0);
  for (int i = 0; i < a->count; i++) {
    const struct term *one = term_of_product(terms, &a->products[i]);
    const double times = a->products[i].factor / by;
    if (floor(times) != times && a->products[i].count == 0) { /* a number goes to both */
      *quotient = term_add(terms, *quotient, term_number(terms, floor(times)));
      *rest = term_add(terms, *rest, term_number(terms, a->products[i].factor - by * floor(times)));
    } else if (floor(times) == times) {
      *quotient = term_add(terms, *quotient, term_scale(terms, one, 1 / by));
    } else {
      *rest = term_add(terms, *rest, one);
    }
  }
  term_range(*rest, &low, &high);
  const double carry = floor(low / by);
  if (!isfinite(low) || !isfinite(high) || floor(high / by) != carry) return false;
  *quotient = term_add(terms, *quotient, term_number(terms, carry));
  *rest = term_add(terms, *rest, term_number(terms, -carry * by));
  return true;
}
